/* Print the ranges of bytes of a file that stand in it twice, by a suffix array.

       cc -O2 -o repeated_bytes repeated_bytes.c -ldivsufsort
       repeated_bytes FILE LENGTH [SEPARATOR]

   A range is a union of windows of LENGTH bytes each of which occurs elsewhere (Lee et al. 2022, ExactSubstr). If
   SEPARATOR, the number of a byte, is given, no window has this byte. The output has a line "out", then a line per
   range, "BEGIN END": what `collect` of google's deduplicate-text-datasets prints.

   Suffixes are sorted by libdivsufsort (Mori). Common prefixes of neighbours come from the array of predecessors
   (Karkkainen, Manzini and Puglisi 2009), in linear time. Memory: 10 bytes per byte. */

#include <divsufsort.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    if (argc < 3) return fprintf(stderr, "usage: repeated_bytes FILE LENGTH [SEPARATOR]\n"), 2;
    FILE *file = fopen(argv[1], "rb");
    if (!file) return perror(argv[1]), 1;
    fseek(file, 0, SEEK_END);
    long size = ftell(file), length = atol(argv[2]);
    int separator = argc > 3 ? atoi(argv[3]) : -1;
    if (size < 2 || size > 0x7fffffff) return fprintf(stderr, "%ld bytes are too few or too many\n", size), 1;
    saidx_t n = size;
    sauchar_t *text = malloc(n), *repeats = calloc(n, 1);
    saidx_t *order = malloc(4L * n), *shared = malloc(4L * n);
    rewind(file);
    if (!text || !repeats || !order || !shared || fread(text, 1, n, file) != (size_t)n) return perror(argv[1]), 1;
    if (divsufsort(text, order, n)) return fprintf(stderr, "sorting failed\n"), 1;
    shared[order[0]] = -1;
    for (saidx_t i = 1; i < n; i++) shared[order[i]] = order[i - 1];
    for (saidx_t p = 0, common = 0; p < n; p++) {
        saidx_t q = shared[p];
        if (q < 0) { shared[p] = common = 0; continue; }
        while (p + common < n && q + common < n && text[p + common] == text[q + common] && text[p + common] != separator)
            common++;
        shared[p] = common;
        if (common) common--;
    }
    for (saidx_t i = 1; i < n; i++)
        if (shared[order[i]] >= length) repeats[order[i]] = repeats[order[i - 1]] = 1;
    puts("out");
    for (long p = 0, begin = -1, end = 0; p <= n; p++) {
        if (begin >= 0 && (p == n || (repeats[p] && p > end))) { printf("%ld %ld\n", begin, end); begin = -1; }
        if (p < n && repeats[p]) { if (begin < 0) begin = p; end = p + length; }
    }
    return 0;
}
