// Runs the tests whose names contain the first argument, or all.
#include "check.hpp"

int main(int count, char** arguments) {
  int run = 0;
  for (const check::Test& test : check::tests()) {
    if (count > 1 && std::string(test.name).find(arguments[1]) == std::string::npos) continue;
    std::printf("%s\n", test.name);
    std::fflush(stdout);
    test.body();
    ++run;
  }
  std::printf("%d tests passed\n", run);
  return run == 0;
}
