/*
 * tcp.h - how a TCP connection that carries FastCGI behaves.
 */
#ifndef FCGI_HOST_BASE_TCP_H
#define FCGI_HOST_BASE_TCP_H

/* Records leave as they are written instead of waiting for the peer to have
 * acknowledged the ones before, and a peer whose machine is gone, or cut off, is
 * noticed within about two minutes.  Does nothing to other sockets. */
void tcp_tune(int fd);

#endif
