// A Gloo library that has nothing the plug-in needs: too old, or something else.
extern "C" int hvd_test_nothing() { return 0; }
