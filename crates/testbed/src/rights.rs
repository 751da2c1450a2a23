//! Whether this process may make emulated hosts.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use rustix::fs::{Access, access};

use crate::cgroup::Cgroups;
use crate::error::{Error, Result};
use crate::names::Prefix;

/// Bits of the effective capabilities in /proc/PID/status (linux/capability.h) that every part of
/// a bed needs.
const CAPABILITIES: [(u32, &str); 2] = [(12, "CAP_NET_ADMIN"), (21, "CAP_SYS_ADMIN")];

/// Programs that build a bed, with the Debian package that has them.
const PROGRAMS: [(&str, &str); 3] =
    [("ip", "iproute2"), ("bridge", "iproute2"), ("tc", "iproute2")];

/// Refuses, with everything that is missing, where no bed can be made.
///
/// # Errors
/// [`Error::Rights`].
pub fn check(prefix: &Prefix) -> Result<()> {
    let mut missing = missing_capabilities();
    for (program, package) in PROGRAMS.iter().filter(|(program, _)| !is_in_path(program)) {
        missing.push(format!("the program `{program}` (package {package})"));
    }
    for file in ["/proc/self/ns/time", "/proc/self/ns/net", "/proc/self/ns/uts"] {
        if !Path::new(file).exists() {
            missing.push(format!("{file}: the kernel has no such namespaces"));
        }
    }
    if let Err(e) = OpenOptions::new().read(true).write(true).open("/dev/net/tun") {
        missing.push(format!("/dev/net/tun ({e})"));
    }
    match Cgroups::of(prefix) {
        Ok(cgroups) => missing.extend(cgroups.roots().into_iter().filter_map(|root| {
            let parent = root.parent()?;
            access(parent, Access::WRITE_OK).err().map(|e| format!("{} ({e})", parent.display()))
        })),
        Err(_) => missing.push("a cgroup hierarchy with a freezer".to_owned()),
    }
    if missing.is_empty() { Ok(()) } else { Err(Error::Rights(missing.join(", "))) }
}

fn missing_capabilities() -> Vec<String> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    let lacks = |(bit, _): &&(u32, &str)| effective & (1 << bit) == 0;
    CAPABILITIES.iter().filter(lacks).map(|(_, name)| (*name).to_owned()).collect()
}

fn is_in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// Whether tests that need a bed run here. Where not, it prints why they are skipped.
///
/// # Panics
/// Where `CI` is `true`: there a skipped test would pass for a proof.
pub fn tests_can_run() -> bool {
    let missing = "rights".parse().and_then(|prefix| check(&prefix));
    match decide(missing, std::env::var("CI").is_ok_and(|ci| ci == "true")) {
        Decision::Run => true,
        Decision::Skip(why) => {
            let test = std::thread::current().name().unwrap_or("a test").to_owned();
            // Not `eprintln!`, which the test harness keeps to itself when a test passes.
            let _ = writeln!(io::stderr(), "skipped {test}: {why}");
            false
        }
        Decision::Fail(why) => panic!("CI=true, and {why}"),
    }
}

#[derive(Debug, PartialEq)]
enum Decision {
    Run,
    Skip(String),
    Fail(String),
}

fn decide(missing: Result<()>, ci: bool) -> Decision {
    match missing {
        Ok(()) => Decision::Run,
        Err(e) if ci => Decision::Fail(e.to_string()),
        Err(e) => Decision::Skip(e.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_right_skips_at_a_desk_and_fails_in_ci() {
        let missing = || Err(Error::Rights("CAP_NET_ADMIN".to_owned()));
        assert!(
            matches!(decide(missing(), false), Decision::Skip(why) if why.contains("NET_ADMIN"))
        );
        assert!(matches!(decide(missing(), true), Decision::Fail(_)));
        assert_eq!(decide(Ok(()), true), Decision::Run);
    }
}
