//! Compiles the one MPI constant that the `mpi` crate lacks, with the same compiler wrapper.

fn main() {
    println!("cargo:rerun-if-changed=src/mpi/constants.c");
    println!("cargo:rerun-if-env-changed=MPICC");
    let mut build = cc::Build::new();
    match build_probe_mpi::probe() {
        Ok(library) => match library.mpicc {
            Some(mpicc) => {
                build.compiler(mpicc);
            }
            None => {
                build.includes(library.include_paths);
            }
        },
        Err(_) => println!(
            "cargo:warning=no MPI found: install openmpi-bin and libopenmpi-dev, or name a compiler wrapper in MPICC"
        ),
    }
    build.file("src/mpi/constants.c").compile("hpcbench_mpi_constants");
}
