//! Programs that do not belong together: other versions, other options, another MPI's launcher,
//! and none.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::common::{Family, Finished, Job, launcher, mpirun_parts, on_path, own_family, skip};
use crate::run::{HPCBENCH, hpcbench, run_of};

fn words(text: &str) -> Vec<OsString> {
    text.split_whitespace().map(OsString::from).collect()
}

/// Exactly one message, on behalf of all ranks, that says so.
fn assert_one_message(finished: &Finished, says: &[&str]) {
    assert_eq!(finished.messages().len(), 1, "{}", finished.words());
    for text in says {
        assert!(finished.messages()[0].contains(text), "{text}\n{}", finished.words());
    }
    assert!(!finished.dir().join("run").exists(), "{}", finished.words());
}

/// The program with another version in it, of the same length.
fn another_version(dir: &Path) -> io::Result<PathBuf> {
    let version = Job::of(HPCBENCH).arg("--version").finish().expect_success().stdout;
    let version = version.trim().strip_prefix("hpcbench ").unwrap().as_bytes().to_vec();
    let mut program = fs::read(HPCBENCH)?;
    let places: Vec<usize> = (0..program.len() - version.len())
        .filter(|at| program[*at..].starts_with(&version))
        .collect();
    assert!(!places.is_empty(), "the version is in the program");
    places.iter().for_each(|at| program[*at] = b'9');
    let path = dir.join("hpcbench-9");
    fs::write(&path, program)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(path)
}

#[test]
fn of_different_versions_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let other = another_version(dir.path()).unwrap();
    let options = words("allreduce -b 8 -e 8 --out run");
    let parts = [(1, HPCBENCH.into(), options.clone()), (2, other.into(), options)];
    let finished = mpirun_parts(&launcher(), &parts).finish();
    assert_eq!(finished.code(), 2, "{}", finished.words());
    let says = ["version of hpcbench", "rank 0", "rank 1", "2 ranks differ", "same binary"];
    assert_one_message(&finished, &says);
}

#[test]
fn with_different_options_are_refused() {
    let part =
        |size: &str| (1, HPCBENCH.into(), words(&format!("allreduce -b {size} -e 64 --out run")));
    let finished = mpirun_parts(&launcher(), &[part("8"), part("16")]).finish();
    assert_eq!(finished.code(), 2, "{}", finished.words());
    assert_one_message(&finished, &["options", "-b 8", "rank 1", "-b 16", "same options"]);
}

#[test]
fn under_another_mpis_launcher_speak_once() {
    let (name, family) = match own_family() {
        Family::OpenMpi => ("mpirun.mpich", Family::Mpich),
        Family::Mpich => ("mpirun.openmpi", Family::OpenMpi),
    };
    let Some(other) = on_path(name) else {
        return skip(&format!("no {name}: the other MPI is not installed"));
    };
    let parts = [(4, HPCBENCH.into(), words("allreduce -b 8 -e 8 --out run"))];
    let finished = mpirun_parts(&other, &parts).finish();
    assert_eq!(finished.code(), 2, "{}", finished.words());
    let (started, wrapper) = match family {
        Family::Mpich => ("MPICH started 4 processes", "MPICC=mpicc.mpich"),
        Family::OpenMpi => ("Open MPI started 4 processes", "MPICC=mpicc.openmpi"),
    };
    assert_one_message(&finished, &[started, "another MPI", "mpirun", wrapper]);
}

#[test]
fn without_a_launcher_are_a_world_of_one() {
    let job = Job::of(HPCBENCH).args("allreduce -b 8 -e 64 -f 2 -n 5 --out run");
    let finished = job.finish().expect_success();
    assert!(finished.stdout.contains("a world of one rank"), "{}", finished.stdout);
    let run = run_of(&finished);
    assert_eq!((run.world.size, run.world.launcher.as_str()), (1, "none"));
    assert!(run.rows.iter().all(|row| row.wrong == Some(0) && row.busbw_gbps == 0.0));
}

#[test]
fn with_a_launcher_of_one_rank_are_what_was_asked_for() {
    let finished = hpcbench(1, "allreduce -b 8 -e 8 -n 5").finish().expect_success();
    assert!(!finished.stdout.contains("Without a launcher"), "{}", finished.stdout);
}
