#include "TestWidth.h"
#include <stdio.h>
#include <stdlib.h>

// Swift Testing starts all tests at once by default. Thousands of tests then share two threads, and limits of time run out while their tests
// wait for a turn. Its own bound has no public setting except a command-line option (Swift 6.3), and a trait cannot take its place: the time
// limit of a test encloses the scopes of its traits, so that a test would spend its limit waiting. The testing library reads this variable
// when it runs the first test, and constructors run before `main`, or when a test bundle is loaded.
const int usual_test_width = 8;

__attribute__((constructor)) static void limit_test_width(void) {
    char width[12];
    snprintf(width, sizeof width, "%d", usual_test_width);
    setenv("SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH", width, /* overwrite: */ 0);
}
