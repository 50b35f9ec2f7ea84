// A program that finds its only library of its own beside itself, or can't be started.
int Lent();

int main() { return Lent(); }
