// A minimal unit test framework: named tests, and checks that report their location and expression.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace check {

struct Test {
  const char* name;
  std::function<void()> body;
};

inline std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}

struct Registration {
  Registration(const char* name, std::function<void()> body) { tests().push_back({name, std::move(body)}); }
};

inline void fail(const char* file, int line, const std::string& what) {
  std::fprintf(stderr, "%s:%d: %s\n", file, line, what.c_str());
  std::exit(1);
}

}  // namespace check

#define TEST(name)                                             \
  static void name();                                          \
  static const check::Registration name##_registration(#name, name); \
  static void name()

#define CHECK(condition) \
  if (!(condition)) check::fail(__FILE__, __LINE__, "is not so: " #condition)

#define CHECK_THROWS(expression, Exception)                                              \
  do {                                                                                   \
    bool thrown = false;                                                                 \
    try {                                                                                \
      static_cast<void>(expression);                                                     \
    } catch (const Exception&) {                                                         \
      thrown = true;                                                                     \
    }                                                                                    \
    if (!thrown) check::fail(__FILE__, __LINE__, #expression " did not throw " #Exception); \
  } while (false)
