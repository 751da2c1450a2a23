use std::io;
use std::path::Path;

/// Why the testbed could not do what it was asked, in words for the person at the terminal.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The process may not make namespaces, network devices or cgroups, or a program is missing.
    #[error("emulated hosts need rights that this process lacks: {0}; run it as root")]
    Rights(String),
    /// A bed with this prefix is up, or what a crash left of one.
    #[error(
        "bed `{0}` exists already; remove it with `hpcbench-testbed down --prefix {0}`, or take \
         another --prefix"
    )]
    Exists(String),
    /// No bed with this prefix.
    #[error("there is no bed `{0}`; make one with `hpcbench-testbed up --prefix {0}`")]
    NoBed(String),
    /// A name, target or number that means nothing here.
    #[error("{0}")]
    Usage(String),
    /// A program of the system that we called failed.
    #[error("`{program}` failed: {words}")]
    Program {
        /// The program and its arguments.
        program: String,
        /// What it wrote.
        words: String,
    },
    /// A process of the bed is gone or does not answer.
    #[error("{0}")]
    Broken(String),
    /// The system refused something.
    #[error("cannot {what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// The system's answer.
        source: io::Error,
    },
}

/// Results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Says what was tried when an I/O call fails.
pub(crate) trait Tried<T> {
    fn tried(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<io::Error>> Tried<T> for std::result::Result<T, E> {
    fn tried(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|e| Error::Io { what: what(), source: e.into() })
    }
}

/// Writes a file and names it when that fails.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).tried(|| format!("write `{text}` to {}", path.display()))
}
