/*
 * client_private.h - what the parts of a connection share: client.c and
 * client_records.c.  For them only.
 */
#ifndef FCGI_HOST_SERVE_CLIENT_PRIVATE_H
#define FCGI_HOST_SERVE_CLIENT_PRIVATE_H

#include "serve/client.h"

/* Before the loop waits again, so that what one turn queues leaves at once. */
void client_flush_soon(struct client *client);

/* Queues bytes, or an END_REQUEST. */
void client_put(struct client *client, const void *data, size_t len);
void client_put_end(struct client *client, uint16_t id, uint32_t app_status, uint8_t protocol_status);

void client_close_after_last_words(struct client *client);
/* What was awaited has come. */
void client_stop_waiting(struct client *client);

/* -1: the peer does not speak FastCGI, or not to the rules. */
int client_take(struct client *client, struct slice input);

#endif
