/* A wall clock that is ahead by WALL_CLOCK_AHEAD seconds (behind if negative), for LD_PRELOAD. Other clocks, and how
   long a wait until a moment of the wall clock lasts, stay as they are: as on a machine whose clock was set wrong.
   Children inherit it. Files' times are the kernel's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>

static time_t ahead(void) {
  static const char* text;
  if (!text && !(text = getenv("WALL_CLOCK_AHEAD"))) text = "0";
  return atol(text);
}

/* The C library's function that this one hides; condition variables have an older version, which is not meant. */
static void* hidden(const char* name) {
  void* found = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
  return found ? found : dlsym(RTLD_NEXT, name);
}

#define HIDDEN(name)                        \
  static __typeof__(name)* real;            \
  if (!real) real = hidden(#name);

static int is_wall(clockid_t clock) { return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE; }

/* A moment in the kernel's time; one of a clock that counts from the machine's start is far below 10^9 s. */
static struct timespec moved(const struct timespec* moment) {
  struct timespec result = *moment;
  if (result.tv_sec > 1000000000) result.tv_sec -= ahead();
  return result;
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  HIDDEN(clock_gettime)
  const int status = real(clock, now);
  if (!status && is_wall(clock)) now->tv_sec += ahead();
  return status;
}

int gettimeofday(struct timeval* restrict now, void* restrict zone) {
  struct timespec moment;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &moment);
  now->tv_sec = moment.tv_sec;
  now->tv_usec = moment.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* to) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (to) *to = now.tv_sec;
  return now.tv_sec;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec* until, struct timespec* left) {
  HIDDEN(clock_nanosleep)
  if (!(flags & TIMER_ABSTIME)) return real(clock, flags, until, left);
  const struct timespec moment = moved(until);
  return real(clock, flags, &moment, left);
}

#define WAIT(name, parameters, arguments) \
  int name parameters {                   \
    HIDDEN(name)                          \
    const struct timespec moment = moved(until); \
    return real arguments;                \
  }

WAIT(pthread_cond_timedwait,
     (pthread_cond_t* restrict condition, pthread_mutex_t* restrict mutex, const struct timespec* restrict until),
     (condition, mutex, &moment))
WAIT(pthread_cond_clockwait,
     (pthread_cond_t* restrict condition, pthread_mutex_t* restrict mutex, clockid_t clock,
      const struct timespec* restrict until),
     (condition, mutex, clock, &moment))
WAIT(pthread_mutex_timedlock, (pthread_mutex_t* restrict mutex, const struct timespec* restrict until),
     (mutex, &moment))
WAIT(pthread_mutex_clocklock,
     (pthread_mutex_t* restrict mutex, clockid_t clock, const struct timespec* restrict until),
     (mutex, clock, &moment))
WAIT(sem_timedwait, (sem_t* restrict semaphore, const struct timespec* restrict until), (semaphore, &moment))
WAIT(sem_clockwait, (sem_t* restrict semaphore, clockid_t clock, const struct timespec* restrict until),
     (semaphore, clock, &moment))

int timerfd_settime(int timer, int flags, const struct itimerspec* value, struct itimerspec* before) {
  HIDDEN(timerfd_settime)
  struct itimerspec copy = *value;
  if (flags & TFD_TIMER_ABSTIME) copy.it_value = moved(&value->it_value);
  return real(timer, flags, &copy, before);
}

/* Abseil, and with it gRPC and Ray, waits and reads the clock by system calls of its own. */
long syscall(long number, ...) {
  HIDDEN(syscall)
  va_list list;
  long a[6];
  va_start(list, number);
  for (int i = 0; i < 6; ++i) a[i] = va_arg(list, long);
  va_end(list);
  struct timespec moment;
  if (number == SYS_clock_gettime) return clock_gettime((clockid_t)a[0], (struct timespec*)a[1]);
  if (number == SYS_futex && (a[1] & FUTEX_CLOCK_REALTIME) && a[3]) {
    moment = moved((const struct timespec*)a[3]);
    a[3] = (long)&moment;
  }
  return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
