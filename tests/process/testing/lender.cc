// A shared library that a program of the tests needs (borrower.cc), for hosts that lack it.
int Lent() { return 0; }
