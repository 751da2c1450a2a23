use std::io;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// A request to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt {
    signal: i32,
}

impl Interrupt {
    /// `SIGINT` or `SIGTERM`.
    pub const fn name(self) -> &'static str {
        if self.signal == SIGINT { "SIGINT" } else { "SIGTERM" }
    }
}

/// Calls `then`, on a thread of its own, at the first SIGINT or SIGTERM. The thread sleeps in a
/// read until then, so it costs the measurement nothing.
///
/// # Errors
/// When the handlers cannot be installed or the thread cannot be started.
pub fn on_interrupt(then: impl FnOnce(Interrupt) + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        if let Some(signal) = signals.forever().next() {
            then(Interrupt { signal });
        }
    })?;
    Ok(())
}
