//! Starting MPI programs across the hosts. Everything is told by environment variables, so that
//! the user's own options on mpirun's command line win.

use std::fmt::Write;
use std::path::Path;

use crate::error::Result;
use crate::namespace::own_directory;
use crate::network::{MANAGEMENT, host_name};
use crate::spec::BedSpec;
use crate::system::tool;

/// Files of the bed's directory that launchers read: the script that takes ssh's place, and the
/// hosts in Open MPI's and in Hydra's format.
pub(crate) fn files(spec: &BedSpec) -> Result<Vec<(String, String)>> {
    let tool = tool()?;
    let quoted = tool.display().to_string().replace('\'', r"'\''");
    let agent = format!("#!/bin/sh\nexec '{quoted}' agent --prefix {} \"$@\"\n", spec.prefix);
    let hosts = |form: fn(&str, usize) -> String| {
        (0..spec.hosts).fold(String::new(), |mut text, host| {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{}", form(&host_name(host), spec.slots));
            text
        })
    };
    Ok(vec![
        ("agent".to_owned(), agent),
        ("openmpi-hosts".to_owned(), hosts(|host, slots| format!("{host} slots={slots}"))),
        ("hydra-hosts".to_owned(), hosts(|host, slots| format!("{host}:{slots}"))),
    ])
}

/// What mpirun's environment says.
///
/// Open MPI 4.1 takes each of its parameters NAME from `OMPI_MCA_NAME` (its manual, mpirun(1),
/// "MCA"); Hydra, MPICH's launcher, its own from `HYDRA_*` (its wiki, "Using the Hydra Process
/// Manager", "Environment Settings").
pub(crate) fn environment(spec: &BedSpec, bed: &Path) -> Vec<(String, String)> {
    let own = own_directory(bed).display().to_string();
    let file = |name: &str| bed.join(name).display().to_string();
    let agent = format!("{own}/agent");
    let nics: Vec<String> = (0..spec.nics).map(|nic| format!("nic{nic}")).collect();
    let open_mpi = |name: &str| format!("OMPI_MCA_{name}");
    let settings = [
        // Session directories go with the host instead of staying in /tmp.
        ("TMPDIR".to_owned(), own),
        // Emulated hosts need root; its two safety catches are for real machines.
        ("OMPI_ALLOW_RUN_AS_ROOT".to_owned(), "1".to_owned()),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM".to_owned(), "1".to_owned()),
        (open_mpi("orte_default_hostfile"), file("openmpi-hosts")),
        (open_mpi("plm_rsh_agent"), agent.clone()),
        (open_mpi("oob_tcp_if_include"), MANAGEMENT.to_owned()),
        (open_mpi("pml"), "ob1".to_owned()),
        (open_mpi("btl"), "tcp,self,vader".to_owned()),
        (open_mpi("btl_tcp_if_include"), nics.join(",")),
        // All hosts share the machine's cores: no binding, and a rank that waits yields.
        (open_mpi("hwloc_base_binding_policy"), "none".to_owned()),
        (open_mpi("rmaps_base_oversubscribe"), "1".to_owned()),
        (open_mpi("mpi_yield_when_idle"), "1".to_owned()),
        ("HYDRA_HOST_FILE".to_owned(), file("hydra-hosts")),
        ("HYDRA_LAUNCHER".to_owned(), "ssh".to_owned()),
        ("HYDRA_LAUNCHER_EXEC".to_owned(), agent),
        ("HYDRA_IFACE".to_owned(), MANAGEMENT.to_owned()),
        // MPICH gets one NIC, whether it was built for UCX or for libfabric.
        ("UCX_NET_DEVICES".to_owned(), "nic0".to_owned()),
        ("FI_TCP_IFACE".to_owned(), "nic0".to_owned()),
        ("FI_SOCKETS_IFACE".to_owned(), "nic0".to_owned()),
    ];
    settings.into_iter().collect()
}

/// Splits what a launcher gives to ssh into the host and the command: options come first, and
/// those of OpenSSH that launchers use take no value of their own (`-x`, `-q`, `-n`, `-T`).
pub(crate) fn split_ssh_arguments(arguments: &[String]) -> Option<(&str, String)> {
    let host = arguments.iter().position(|argument| !argument.starts_with('-'))?;
    let command = arguments[host + 1..].join(" ");
    (!command.is_empty()).then(|| (arguments[host].as_str(), command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_takes_the_host_and_the_rest() {
        let split = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
            split_ssh_arguments(&words).map(|(host, command)| (host.to_owned(), command))
        };
        assert_eq!(
            split(&["-x", "h2", "orted", "-mca", "ess", "env"]),
            Some(("h2".to_owned(), "orted -mca ess env".to_owned()))
        );
        assert_eq!(split(&["-x", "h2"]), None);
        assert_eq!(split(&["-x"]), None);
    }
}
