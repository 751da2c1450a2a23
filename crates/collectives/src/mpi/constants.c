#include <mpi.h>

/* A macro with a cast, of a different value in each MPI: bindgen cannot read it. */
void *const hpcbench_mpi_in_place = MPI_IN_PLACE;
