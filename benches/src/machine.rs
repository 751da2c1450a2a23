//! What machine the numbers come from.

use std::fs;

use serde::Serialize;

/// The machine, without its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Cores this process may run on.
    pub cores: usize,
    /// Processor, as it calls itself.
    pub cpu: String,
    /// Kernel release.
    pub kernel: String,
    /// Memory, in bytes.
    pub memory_bytes: u64,
}

impl Machine {
    /// This machine. What cannot be found out is `unknown`, or 0.
    pub fn here() -> Self {
        let info = rustix::system::sysinfo();
        Machine {
            cores: std::thread::available_parallelism().map_or(0, Into::into),
            cpu: cpu_model().unwrap_or_else(|| "unknown".to_owned()),
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            memory_bytes: info.totalram * u64::from(info.mem_unit),
        }
    }
}

fn cpu_model() -> Option<String> {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known() {
        let machine = Machine::here();
        assert!(machine.cores >= 1);
        assert!(machine.memory_bytes > 1 << 20);
        assert!(machine.kernel.starts_with(|c: char| c.is_ascii_digit()), "{machine:?}");
    }
}
