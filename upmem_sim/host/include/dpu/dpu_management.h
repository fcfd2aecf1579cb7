/* Where DPUs are: ranks, slices (control interfaces) and members. Interface of the UPMEM SDK. */
#ifndef DPU_MANAGEMENT_H
#define DPU_MANAGEMENT_H

#include "dpu_description.h"
#include "dpu_error.h"
#include "dpu_types.h"

#ifdef __cplusplus
extern "C" {
#endif

dpu_id_t dpu_get_id(struct dpu_t *dpu);
dpu_slice_id_t dpu_get_slice_id(struct dpu_t *dpu);
dpu_member_id_t dpu_get_member_id(struct dpu_t *dpu);
bool dpu_is_enabled(struct dpu_t *dpu);
struct dpu_rank_t *dpu_get_rank(struct dpu_t *dpu);
dpu_rank_id_t dpu_get_rank_id(struct dpu_rank_t *rank);
int dpu_get_rank_numa_node(struct dpu_rank_t *rank);
dpu_description_t dpu_get_description(struct dpu_rank_t *rank);
/* One free rank, and giving it back. */
dpu_error_t dpu_get_rank_of_type(const char *profile, struct dpu_rank_t **rank);
dpu_error_t dpu_free_rank(struct dpu_rank_t *rank);
/* The DPU at a place of a rank, NULL if there is none. */
struct dpu_t *dpu_get(struct dpu_rank_t *rank, dpu_slice_id_t slice, dpu_member_id_t member);

struct dpu_set_t dpu_set_from_rank(struct dpu_rank_t **rank);
struct dpu_set_t dpu_set_from_dpu(struct dpu_t *dpu);
struct dpu_rank_t *dpu_rank_from_set(struct dpu_set_t set);
struct dpu_t *dpu_from_set(struct dpu_set_t set);

/* The enabled DPU after `previous` (NULL: the first), NULL at the end. Used by the loop below. */
struct dpu_t *dpu_next_enabled(struct dpu_rank_t *rank, struct dpu_t *previous);

/* STRUCT_DPU_FOREACH(rank, dpu): `dpu` is a struct dpu_t * that the loop declares. */
#define STRUCT_DPU_FOREACH(rank, dpu)                                                         \
    for (struct dpu_t *dpu = dpu_next_enabled((rank), NULL); dpu != NULL;                     \
         dpu = dpu_next_enabled((rank), dpu))

#ifdef __cplusplus
}
#endif

#endif
