// ELF files of DPU programs, as elf.py reads them: every part is checked before it is used.
#include <elf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "decode.h"
#include "program.h"

namespace upmem::host {
namespace {

constexpr uint32_t kMachine = 245;  // of UPMEM's LLVM
constexpr uint32_t kMaxSections = 64, kEncodingVersion = 2;
constexpr uint32_t kWramBytes = 65536, kMramBytes = 64u << 20;
constexpr uint32_t kAtomicBase = 0xF000'0000;
constexpr uint32_t kIramFileBytes = kIramInstructions * 8;
constexpr uint32_t kNoLine = ~0u;
constexpr char kNoteSection[] = ".note.upmem_sim", kLinesSection[] = ".upmem_sim.lines";
constexpr char kHostSection[] = ".data.__sys_host";

[[noreturn]] void damaged(const std::string& what) {
  throw Failure{DPU_ERR_ELF_INVALID_FILE, what};
}

struct Section {
  std::string name;
  Elf32_Shdr header;
  std::string_view data;  // empty without bytes
  bool loaded() const {
    return (header.sh_flags & SHF_ALLOC) &&
           (header.sh_type == SHT_PROGBITS || header.sh_type == SHT_NOBITS);
  }
};

struct Region {
  uint32_t base, bytes;
};
constexpr Region kRegions[] = {
    {kAtomicBase, 256}, {kIramBase, kIramFileBytes}, {kMramBase, kMramBytes}, {0, kWramBytes}};

const Region& region_of(uint32_t address) {
  return *std::find_if(std::begin(kRegions), std::end(kRegions),
                       [=](const Region& r) { return address >= r.base; });
}

template <class T>
T read_at(std::string_view file, uint64_t offset) {
  if (offset > file.size() || file.size() - offset < sizeof(T)) damaged("the file ends too early");
  T out;
  std::memcpy(&out, file.data() + offset, sizeof(T));
  return out;
}

std::string text_at(std::string_view strings, uint32_t offset) {
  if (offset >= strings.size()) damaged("a name lies outside its table");
  const std::string_view rest = strings.substr(offset);
  return std::string(rest.substr(0, rest.find('\0')));
}

Elf32_Ehdr read_header(std::string_view file) {
  if (file.size() < sizeof(Elf32_Ehdr) || std::memcmp(file.data(), ELFMAG, SELFMAG) != 0)
    damaged("not an ELF file");
  const auto header = read_at<Elf32_Ehdr>(file, 0);
  if (header.e_ident[EI_CLASS] != ELFCLASS32 || header.e_ident[EI_DATA] != ELFDATA2LSB)
    damaged("not a 32-bit little endian ELF file");
  if (header.e_machine != kMachine)
    damaged("ELF for machine " + std::to_string(header.e_machine) + ", a DPU's is 245");
  if (header.e_shentsize != sizeof(Elf32_Shdr) || header.e_shnum < 1 ||
      header.e_shnum > kMaxSections || header.e_shstrndx >= header.e_shnum)
    damaged("section headers are missing");
  return header;
}

std::vector<Section> read_sections(std::string_view file) {
  const Elf32_Ehdr header = read_header(file);
  std::vector<Section> out(header.e_shnum);
  for (uint32_t i = 0; i < out.size(); ++i) {
    Elf32_Shdr& h = out[i].header;
    h = read_at<Elf32_Shdr>(file, header.e_shoff + uint64_t{i} * sizeof(Elf32_Shdr));
    if (h.sh_type == SHT_NOBITS || h.sh_type == SHT_NULL) continue;
    if (uint64_t{h.sh_offset} + h.sh_size > file.size()) damaged("a section ends beyond the file");
    out[i].data = file.substr(h.sh_offset, h.sh_size);
  }
  const std::string_view names = out[header.e_shstrndx].data;
  for (uint32_t i = 0; i < out.size(); ++i) {
    out[i].name = i ? text_at(names, out[i].header.sh_name) : "";
    for (uint32_t k = 0; k < i; ++k)
      if (out[k].name == out[i].name) damaged("section " + out[i].name + " occurs twice");
  }
  return out;
}

const Section* find(const std::vector<Section>& sections, std::string_view name) {
  for (const Section& s : sections)
    if (s.name == name) return &s;
  return nullptr;
}

uint32_t crc32(uint32_t crc, std::string_view bytes) {
  static const auto table = [] {
    std::array<uint32_t, 256> t{};
    for (uint32_t i = 0; i < 256; ++i) {
      t[i] = i;
      for (int k = 0; k < 8; ++k) t[i] = t[i] >> 1 ^ (t[i] & 1 ? 0xEDB8'8320u : 0);
    }
    return t;
  }();
  crc = ~crc;
  for (const char c : bytes) crc = crc >> 8 ^ table[(crc ^ static_cast<uint8_t>(c)) & 255];
  return ~crc;
}

// The note of our own files; files of other tools have neither note nor table of lines.
void check_note(const std::vector<Section>& sections, std::string_view file) {
  const Section *note = find(sections, kNoteSection), *lines = find(sections, kLinesSection);
  if (!note && !lines) return;
  constexpr uint32_t kName = 12, kVersionAt = 12 + kName, kChecksumAt = kVersionAt + 4;
  if (!note || !lines || note->data.size() != kChecksumAt + 4) damaged("its note is damaged");
  if (read_at<uint32_t>(note->data, kVersionAt) != kEncodingVersion)
    damaged("instruction encoding of another version");
  const uint32_t at = note->header.sh_offset + kChecksumAt;
  const uint32_t sum = crc32(crc32(0, file.substr(0, at)), file.substr(at + 4));
  if (read_at<uint32_t>(note->data, kChecksumAt) != sum) damaged("its checksum does not fit");
}

std::vector<Row> read_code(const std::vector<Section>& sections) {
  const Section* text = find(sections, ".text");
  if (!text) damaged("section .text is missing");
  const size_t count = text->data.size() / 8;
  if (text->header.sh_addr != kIramBase || text->data.size() % 8 || count == 0 ||
      count > kIramInstructions)
    damaged(".text: " + std::to_string(text->data.size()) + " bytes, limit 4096 instructions of 8");
  std::vector<Row> rows(count);
  for (size_t i = 0; i < count; ++i)
    if (!decode_word(read_at<uint64_t>(text->data, i * 8), rows[i]))
      damaged(".text: instruction " + std::to_string(i) + " is not an instruction");
  return rows;
}

Image read_image(const std::vector<Section>& sections, const Region& region) {
  std::vector<const Section*> parts;
  for (const Section& s : sections)
    if (s.loaded() && s.header.sh_type == SHT_PROGBITS && &region_of(s.header.sh_addr) == &region)
      parts.push_back(&s);
  std::stable_sort(parts.begin(), parts.end(), [](const Section* a, const Section* b) {
    return std::pair(a->header.sh_addr, a->header.sh_size) <
           std::pair(b->header.sh_addr, b->header.sh_size);
  });
  Image out;
  if (!parts.empty() && region.base) out.start = parts[0]->header.sh_addr - region.base;
  for (const Section* part : parts) {
    const uint64_t at = part->header.sh_addr - region.base - out.start;
    if (at < out.bytes.size()) damaged("section " + part->name + " lies over another");
    if (out.start + at + part->data.size() > region.bytes)
      damaged("section " + part->name + " does not fit its memory");
    out.bytes.resize(at);
    out.bytes += part->data;
  }
  return out;
}

bool is_visible(const std::string& section) {
  return section == kHostSection || section.rfind(".data", 0) != 0;
}

void add_symbol(dpu_program_t& program, const std::vector<Section>& sections,
                const Elf32_Sym& entry, const std::string& name) {
  const uint32_t type = ELF32_ST_TYPE(entry.st_info);
  if (name.empty() || type == STT_FILE || type == STT_SECTION) return;
  const bool local = ELF32_ST_BIND(entry.st_info) == STB_LOCAL;
  if (local && program.symbols.count(name)) return;
  if (entry.st_shndx == SHN_ABS) {
    program.symbols[name] = {entry.st_value, entry.st_size, true};
    return;
  }
  if (entry.st_shndx == SHN_UNDEF || entry.st_shndx >= sections.size())
    damaged("symbol " + name + " has no section");
  const Section& section = sections[entry.st_shndx];
  if (!section.loaded()) return;
  const Region& region = region_of(section.header.sh_addr);
  if (entry.st_value < region.base ||
      uint64_t{entry.st_value} + entry.st_size > uint64_t{region.base} + region.bytes)
    damaged("symbol " + name + " lies outside its memory");
  program.symbols[name] = {entry.st_value, entry.st_size, is_visible(section.name)};
}

void read_symbols(dpu_program_t& program, const std::vector<Section>& sections) {
  const Section* table = find(sections, ".symtab");
  if (!table || table->header.sh_type != SHT_SYMTAB ||
      table->header.sh_entsize != sizeof(Elf32_Sym) || table->header.sh_link >= sections.size())
    damaged("section .symtab is missing");
  const std::string_view names = sections[table->header.sh_link].data;
  for (size_t at = 0; at + sizeof(Elf32_Sym) <= table->data.size(); at += sizeof(Elf32_Sym)) {
    const auto entry = read_at<Elf32_Sym>(table->data, at);
    if (entry.st_name) add_symbol(program, sections, entry, text_at(names, entry.st_name));
  }
  // What the heap's symbol gives access to is all that is left.
  const auto heap = program.symbols.find("__sys_used_mram_end");
  if (heap != program.symbols.end())
    heap->second.size = kMramBase + kMramBytes - heap->second.address;
}

void read_lines(dpu_program_t& program, const Section* table, size_t count) {
  program.lines.resize(count);
  if (!table) return;
  const size_t end = 4 + 8 * count;
  if (table->data.size() < end || read_at<uint32_t>(table->data, 0) != count)
    damaged("its table of lines is damaged");
  for (size_t at = end; at < table->data.size(); at += program.files.back().size() + 1)
    program.files.push_back(text_at(table->data, static_cast<uint32_t>(at)));
  for (size_t i = 0; i < count; ++i) {
    const auto file = read_at<uint32_t>(table->data, 4 + 8 * i);
    if (file == kNoLine) continue;
    if (file >= program.files.size()) damaged("its table of lines is damaged");
    program.lines[i] = {static_cast<int32_t>(file), read_at<uint32_t>(table->data, 8 + 8 * i)};
  }
}

}  // namespace

Program read_program(std::string bytes) {
  auto program = std::make_shared<dpu_program_t>();
  program->file = std::move(bytes);
  const std::string_view file = program->file;
  const std::vector<Section> sections = read_sections(file);
  check_note(sections, file);
  const std::vector<Row> rows = read_code(sections);
  program->code = std::make_shared<Code>(rows.data(), static_cast<uint32_t>(rows.size()));
  program->wram = read_image(sections, kRegions[3]);
  program->mram = read_image(sections, kRegions[2]);
  read_symbols(*program, sections);
  const Symbol* tasklets = program->find("NR_TASKLETS");
  if (!tasklets || tasklets->address == 0) damaged("symbol NR_TASKLETS is missing");
  if (tasklets->address > kMaxTasklets)
    throw Failure{DPU_ERR_TOO_MANY_TASKLETS,
                  std::to_string(tasklets->address) + " tasklets, limit 24"};
  program->nr_tasklets = tasklets->address;
  read_lines(*program, find(sections, kLinesSection), rows.size());
  return program;
}

}  // namespace upmem::host
