/* The few functions of the libc that would reach for an operating system: answered by the host, or refused.
   Invariant: the guest imports nothing but what abi.h names; the host checks that when it takes an engine in. */
#ifndef TK_LIBC_H
#define TK_LIBC_H

#include <stdarg.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *into)
{
    double ms = tk_host_now();
    into->tv_sec = (time_t)(ms / 1000);
    into->tv_nsec = (long)((ms - (double)into->tv_sec * 1000) * 1e6);
    return 0;
}

int gettimeofday(struct timeval *restrict into, void *restrict zone)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    into->tv_sec = now.tv_sec;
    into->tv_usec = now.tv_nsec / 1000;
    return 0;
}

_Noreturn void abort(void)
{
    __builtin_trap();
}

/* The engine prints only where it dumps its own state or is about to abort. */
int printf(const char *restrict format, ...)
{
    return 0;
}

int fprintf(FILE *restrict stream, const char *restrict format, ...)
{
    return 0;
}

int puts(const char *text)
{
    return 0;
}

int putchar(int byte)
{
    return byte;
}

int fputs(const char *restrict text, FILE *restrict stream)
{
    return 0;
}

int fputc(int byte, FILE *stream)
{
    return byte;
}

#endif
