//! Starting ranks, the same way for both sides of a comparison.

use std::process::Command;

/// `mpirun` and what it needs on a machine with fewer cores than ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launcher {
    mpirun: String,
    args: Vec<String>,
    version: String,
}

/// Why there is no launcher.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot run `{mpirun} --version`: {source}; install Open MPI or MPICH, or name it with --mpirun"
)]
pub struct LauncherError {
    mpirun: String,
    source: std::io::Error,
}

impl Launcher {
    /// Asks `mpirun` what it is. `extra` arguments come after those it always gets.
    ///
    /// # Errors
    /// When it cannot be run.
    pub fn find(mpirun: &str, extra: &[String]) -> Result<Self, LauncherError> {
        let output = Command::new(mpirun)
            .arg("--version")
            .output()
            .map_err(|source| LauncherError { mpirun: mpirun.to_owned(), source })?;
        let text = String::from_utf8_lossy(&output.stdout);
        let args = usual_args(&text, rustix::process::geteuid().is_root());
        Ok(Launcher {
            mpirun: mpirun.to_owned(),
            args: args.iter().map(|arg| (*arg).to_owned()).chain(extra.iter().cloned()).collect(),
            version: text.lines().next().unwrap_or("unknown").trim().to_owned(),
        })
    }

    /// The first line of its own version text.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The command that runs a program, given word by word, on `ranks` ranks.
    pub fn command(&self, ranks: u32, program: &[String]) -> Vec<String> {
        let mut words = vec![self.mpirun.clone()];
        words.extend(self.args.iter().cloned());
        words.extend(["-n".to_owned(), ranks.to_string()]);
        words.extend(program.iter().cloned());
        words
    }
}

/// Open MPI refuses root and more ranks than cores, and waits by spinning, unless told otherwise;
/// MPICH's launcher has none of these options.
fn usual_args(version: &str, root: bool) -> Vec<&'static str> {
    if !version.contains("Open MPI") {
        return Vec::new();
    }
    let mut args =
        vec!["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"];
    if root {
        args.push("--allow-run-as-root");
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_mpi_alone_gets_its_options() {
        assert!(usual_args("mpirun (Open MPI) 4.1.4", true).contains(&"--allow-run-as-root"));
        assert!(!usual_args("mpirun (Open MPI) 4.1.4", false).contains(&"--allow-run-as-root"));
        assert!(usual_args("HYDRA build details:", true).is_empty());
    }

    #[test]
    fn a_missing_launcher_is_said() {
        let error = Launcher::find("/no/such/mpirun", &[]).unwrap_err().to_string();
        assert!(error.contains("/no/such/mpirun") && error.contains("--mpirun"), "{error}");
    }
}
