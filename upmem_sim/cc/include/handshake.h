/* Rendez-vous of two tasklets (UPMEM SDK manual, "Synchronization"). */
#ifndef UPMEM_HANDSHAKE_H
#define UPMEM_HANDSHAKE_H
#include <sysdef.h>

/* Blocks until some tasklet waits, or has waited, for the caller. */
void handshake_notify(void);
/* Blocks until `notifier` notifies. 0, or EALREADY if another tasklet already waits for it. Fault 3
 * if NR_TASKLETS is not above `notifier`. */
int handshake_wait_for(sysname_t notifier);
#endif
