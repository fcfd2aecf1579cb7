// The cases of a switch over handler numbers, one macro for each kind of operation, for loops that
// define TASKLET (tasklet, pc and decoded instruction at hand) and a variable `done`. HANDLE_LOAD,
// HANDLE_STORE and HANDLE_ATOMIC are the loop's own. Included once by each loop.

#define HANDLE(name, form, call) \
  case handler(OP_##name, form): \
    done = call;                 \
    break;
#define HANDLE_ALU_FORM(name, form) HANDLE(name, form, (alu<OP_##name, form>(TASKLET)))
#define HANDLE_ALU(name)         \
  HANDLE_ALU_FORM(name, RR)      \
  HANDLE_ALU_FORM(name, RI)      \
  HANDLE_ALU_FORM(name, IR)      \
  HANDLE_ALU_FORM(name, JUMP_RR) \
  HANDLE_ALU_FORM(name, JUMP_RI) \
  HANDLE_ALU_FORM(name, JNZ_RR)  \
  HANDLE_ALU_FORM(name, JNZ_RI)  \
  HANDLE_ALU_FORM(name, SET_RR)  \
  HANDLE_ALU_FORM(name, SET_RI)  \
  HANDLE_ALU_FORM(name, WIDE_RR) \
  HANDLE_ALU_FORM(name, WIDE_RI)
#define HANDLE_UNARY(name) HANDLE(name, RR, unary<OP_##name>(TASKLET))
#define HANDLE_SHADD(name) HANDLE(name, RR, shift_add<OP_##name>(TASKLET))
#define HANDLE_STEP(name)                          \
  HANDLE(name, RR, (step<OP_##name, RR>(TASKLET))) \
  HANDLE(name, JUMP_RR, (step<OP_##name, JUMP_RR>(TASKLET)))
#define HANDLE_PAIR(name) HANDLE(name, RR, move_pair<OP_##name>(TASKLET))
#define HANDLE_CALL(name)             \
  HANDLE(name, RR, call<RR>(TASKLET)) \
  HANDLE(name, RI, call<RI>(TASKLET))
#define HANDLE_UNIT(name)                                    \
  HANDLE(name, RR, (unit<OP_##name, RR>(TASKLET, m.params))) \
  HANDLE(name, RI, (unit<OP_##name, RI>(TASKLET, m.params)))
#define HANDLE_NONE(name) HANDLE(name, RR, skip(TASKLET))
#define HANDLE_FRAME       \
  case kFrame:             \
    done = frame(TASKLET); \
    break;
#define HANDLE_STOREID(name)
#define HANDLE_DMA(name)
#define HANDLE_THREAD(name)
#define HANDLE_STOP(name)
#define HANDLE_TIME(name)
#define HANDLE_CODE(name)
