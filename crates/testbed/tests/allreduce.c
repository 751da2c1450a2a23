/* Ten allreduces of 1 MiB: traffic for the interface counters. */
#include <mpi.h>

static float in[1 << 18], out[1 << 18];

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    for (int i = 0; i < 10; i++)
        MPI_Allreduce(in, out, 1 << 18, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
