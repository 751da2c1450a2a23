//! What every figure needs: a session, a launcher, and the programs it measures.

use std::env;
use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use hpcbench_benches::launcher::Launcher;
use hpcbench_benches::options::ProgramOptions;
use hpcbench_benches::record::Figure;
use hpcbench_benches::session::{Place, Session};
use tempfile::TempDir;

use crate::Places;

/// What every figure needs.
pub struct Bench {
    /// Runs and compares programs, each in an empty directory: hpcbench leaves a run behind.
    pub session: Session,
    /// Starts ranks.
    pub launcher: Launcher,
    /// `hpcbench`, by its full path.
    pub hpcbench: String,
    osu: Option<PathBuf>,
    imb: Option<PathBuf>,
    out: PathBuf,
}

impl Bench {
    /// Finds everything but the peers.
    pub fn new(places: &Places, programs: &ProgramOptions) -> Result<Self, Box<dyn Error>> {
        let hpcbench = match &places.hpcbench {
            Some(path) => existing(path)?,
            None => beside_this_program("hpcbench")?,
        };
        Ok(Bench {
            session: programs.session(Place::Fresh)?,
            launcher: Launcher::find(&places.mpirun, &places.mpirun_arg)?,
            hpcbench,
            osu: given(&places.osu, "HPCBENCH_OSU_DIR"),
            imb: given(&places.imb, "HPCBENCH_IMB_DIR"),
            out: places.out.clone(),
        })
    }

    /// A program of the OSU micro-benchmarks, or why there is none.
    pub fn osu(&self, program: &str) -> Result<String, String> {
        peer(self.osu.as_deref(), program, "--osu", "HPCBENCH_OSU_DIR")
    }

    /// A program of the Intel MPI Benchmarks, or why there is none.
    pub fn imb(&self, program: &str) -> Result<String, String> {
        peer(self.imb.as_deref(), program, "--imb", "HPCBENCH_IMB_DIR")
    }

    /// A figure without parts.
    pub fn begin(&self, figure: &str, what: &str) -> Figure {
        Figure::begin(figure, what, Some(self.launcher.version()))
    }

    /// A directory on the disk that results go to, removed when dropped.
    pub fn scratch(&self) -> io::Result<TempDir> {
        fs::create_dir_all(&self.out)?;
        tempfile::tempdir_in(&self.out)
    }

    /// Writes a figure down, after each part: what was measured outlives an interrupt.
    pub fn write(&self, figure: &Figure) -> io::Result<PathBuf> {
        figure.write(&self.out)
    }

    /// Writes a finished figure down, says where, and gives its exit code.
    pub fn finish(&self, figure: &Figure) -> Result<ExitCode, Box<dyn Error>> {
        eprintln!("written: {}", self.write(figure)?.display());
        Ok(figure.exit_code())
    }
}

/// A program that was built beside this one.
pub fn beside_this_program(name: &str) -> Result<String, Box<dyn Error>> {
    let path = env::current_exe()?.with_file_name(name);
    existing(&path).map_err(|error| {
        format!("{error}; build the workspace with `cargo build --release` first").into()
    })
}

fn existing(path: &Path) -> Result<String, Box<dyn Error>> {
    let full =
        path.canonicalize().map_err(|error| format!("no {} here: {error}", path.display()))?;
    full.into_os_string().into_string().map_err(|path| format!("{path:?} is not UTF-8").into())
}

fn given(option: &Option<PathBuf>, variable: &str) -> Option<PathBuf> {
    option.clone().or_else(|| env::var_os(variable).map(PathBuf::from))
}

fn peer(dir: Option<&Path>, program: &str, flag: &str, variable: &str) -> Result<String, String> {
    let dir = dir.ok_or_else(|| {
        format!("no {program} was named: give its directory with {flag} or {variable} (benches/peers/README.md)")
    })?;
    existing(&dir.join(program)).map_err(|error| error.to_string())
}
