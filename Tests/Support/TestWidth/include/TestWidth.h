#pragma once

/// The largest number of tests that run at once, unless the environment sets another.
extern const int usual_test_width;
