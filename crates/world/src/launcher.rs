//! What started this process, from the variables that launchers set.

use std::ffi::OsString;

/// The program that started the ranks, and what it told this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launcher {
    /// `Open MPI`, `MPICH`, `Slurm`, or `none`.
    pub name: &'static str,
    /// Number of ranks it started, 1 without one.
    pub size: usize,
    /// This process's rank, 0 without one.
    pub rank: usize,
}

/// Name, variable of the world's size, variable of the rank. Sources: Open MPI 4.1's
/// `orte/mca/schizo/ompi`, MPICH's Hydra (PMI-1), `srun(1)`.
const LAUNCHERS: [(&str, &str, &str); 3] = [
    ("Open MPI", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    ("MPICH", "PMI_SIZE", "PMI_RANK"),
    ("Slurm", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),
];

impl Launcher {
    /// Reads this process's environment.
    pub fn detect() -> Launcher {
        Launcher::from_variables(|name| std::env::var_os(name))
    }

    fn from_variables(get: impl Fn(&str) -> Option<OsString>) -> Launcher {
        let number = |name: &str| get(name)?.to_str()?.trim().parse::<usize>().ok();
        LAUNCHERS
            .iter()
            .find_map(|&(name, size, rank)| {
                Some(Launcher { name, size: number(size)?, rank: number(rank)? })
            })
            .unwrap_or(Launcher { name: "none", size: 1, rank: 0 })
    }

    /// The option of this launcher's that sets the number of ranks, as typed.
    pub fn example(&self) -> &'static str {
        if self.name == "Slurm" { "srun -n 4" } else { "mpirun -n 4" }
    }

    /// Why a world of one cannot be what the user meant: the launcher started several.
    pub fn explain_lone_world(&self, library: &str) -> Option<String> {
        let remedy = match self.name {
            "Slurm" => {
                "let srun speak this MPI's own protocol: srun --mpi=pmix or --mpi=pmi2 (srun --mpi=list \
                        shows them), or start it with this MPI's own mpirun"
            }
            "MPICH" => {
                "start it with its own MPI's mpirun, or build it for this one: MPICC=mpicc.mpich cargo \
                        build --release -p hpcbench --target-dir target/mpich"
            }
            _ => {
                "start it with its own MPI's mpirun, or build it for this one: MPICC=mpicc.openmpi cargo \
                  build --release -p hpcbench --target-dir target/openmpi"
            }
        };
        (self.size > 1).then(|| {
            format!(
                "{} started {} processes, but to each of them the world has one rank: this hpcbench was built for \
                 another MPI, {library}. Do this: {remedy}",
                self.name, self.size,
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &[(&str, &str)]) -> Launcher {
        Launcher::from_variables(|name| {
            pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn each_launcher_is_known_by_its_variables() {
        assert_eq!(with(&[]), Launcher { name: "none", size: 1, rank: 0 });
        let open_mpi = with(&[("OMPI_COMM_WORLD_SIZE", "4"), ("OMPI_COMM_WORLD_RANK", "3")]);
        assert_eq!(open_mpi, Launcher { name: "Open MPI", size: 4, rank: 3 });
        assert_eq!(with(&[("PMI_SIZE", "2"), ("PMI_RANK", "1")]).name, "MPICH");
        assert_eq!(with(&[("SLURM_STEP_NUM_TASKS", "8"), ("SLURM_PROCID", "5")]).size, 8);
        assert_eq!(with(&[("PMI_SIZE", "two"), ("PMI_RANK", "1")]).name, "none");
    }

    #[test]
    fn a_lone_world_under_a_launcher_is_a_trap() {
        let mpich = with(&[("PMI_SIZE", "4"), ("PMI_RANK", "0")]);
        assert!(mpich.explain_lone_world("Open MPI v4.1.4").unwrap().contains("mpicc.mpich"));
        assert_eq!(with(&[]).explain_lone_world("Open MPI v4.1.4"), None);
        assert_eq!(with(&[("PMI_SIZE", "1"), ("PMI_RANK", "0")]).explain_lone_world("x"), None);
    }
}
