use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};

use super::control::{Report, Request, read_request};
use super::lane::{Fate, Lane};
use super::tap;
use crate::error::{Result, Tried};

/// What a relay process is told on its command line.
#[derive(Clone, Debug, clap::Args)]
pub struct RelayOptions {
    /// TAP device towards the host
    #[arg(long)]
    host_tap: String,
    /// TAP device towards the rail
    #[arg(long)]
    rail_tap: String,
    /// Unix socket on which it takes rules and reports
    #[arg(long)]
    socket: PathBuf,
}

/// Frames read from one side before the other side has its turn.
const BATCH: usize = 64;
/// Largest frame that a TAP device hands over.
const FRAME_BYTES: usize = 65_536;

/// Runs a relay until it is killed. Says `ready` on standard output when its devices exist.
///
/// # Errors
/// When the devices or the socket cannot be made, or reading a device fails.
pub fn run(options: &RelayOptions) -> Result<()> {
    let mut relay = Relay {
        host: tap::create(&options.host_tap)?,
        rail: tap::create(&options.rail_tap)?,
        send: Lane::new(),
        receive: Lane::new(),
        scheduling: run_first(),
        buffer: vec![0; FRAME_BYTES],
    };
    let listener = UnixListener::bind(&options.socket)
        .tried(|| format!("listen on {}", options.socket.display()))?;
    listener.set_nonblocking(true).tried(|| "set a socket to not block".to_owned())?;
    crate::namespace::say_ready()?;
    loop {
        relay.turn(&listener).tried(|| "relay frames".to_owned())?;
    }
}

struct Relay {
    host: File,
    rail: File,
    send: Lane,
    receive: Lane,
    scheduling: &'static str,
    buffer: Vec<u8>,
}

impl Relay {
    /// Waits for a frame, a due time or a client, and serves it.
    fn turn(&mut self, listener: &UnixListener) -> io::Result<()> {
        let due_ns = self.send.next_due_ns().into_iter().chain(self.receive.next_due_ns()).min();
        let timeout = due_ns.map(|due_ns| timespec(due_ns.saturating_sub(now_ns())));
        let mut ready = [
            PollFd::new(&self.host, PollFlags::IN),
            PollFd::new(&self.rail, PollFlags::IN),
            PollFd::new(listener, PollFlags::IN),
        ];
        match poll(&mut ready, timeout.as_ref()) {
            Err(rustix::io::Errno::INTR) => return Ok(()),
            other => other?,
        };
        let [host, rail, client] = ready.map(|fd| !fd.revents().is_empty());
        let woke_ns = now_ns();
        flush(&mut self.send, &self.rail);
        flush(&mut self.receive, &self.host);
        if host {
            carry(&mut self.send, &self.host, &self.rail, &mut self.buffer, woke_ns)?;
        }
        if rail {
            carry(&mut self.receive, &self.rail, &self.host, &mut self.buffer, woke_ns)?;
        }
        if client {
            self.serve(listener);
        }
        Ok(())
    }

    fn serve(&mut self, listener: &UnixListener) {
        let Ok((mut stream, _)) = listener.accept() else { return };
        let Some(request) = read_request(&mut stream) else { return };
        if let Request::Rules(rules) = request {
            let now_ns = now_ns();
            let (send, receive) = rules.into_iter().partition(|rule| rule.sends);
            self.send.set_rules(send, now_ns);
            self.receive.set_rules(receive, now_ns);
        }
        let report = Report {
            send: self.send.report(),
            receive: self.receive.report(),
            scheduling: self.scheduling.to_owned(),
        };
        // A client that has gone away needs no answer.
        let _ = serde_json::to_vec(&report).map(|text| stream.write_all(&text));
    }
}

/// Sends what is due.
fn flush(lane: &mut Lane, mut to: &File) {
    while let Some((due_ns, frame)) = lane.take_due(now_ns()) {
        if to.write(&frame).is_err() {
            lane.unsent();
        }
        lane.left(due_ns, now_ns(), frame);
    }
}

/// Takes the frames that wait at one device and passes on those that need not be held.
fn carry(
    lane: &mut Lane,
    mut from: &File,
    mut to: &File,
    buffer: &mut [u8],
    woke_ns: u64,
) -> io::Result<()> {
    for _ in 0..BATCH {
        let length = match from.read(buffer) {
            Ok(length) => length,
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
            // The device is down for the moment, as while it is being plugged in.
            Err(e) if e.raw_os_error() == Some(libc::EIO) => return Ok(()),
            Err(e) => return Err(e),
        };
        let frame = &mut buffer[..length];
        if lane.accept(frame, now_ns()) == Fate::Pass {
            if to.write(frame).is_err() {
                lane.unsent();
            }
            lane.passed(now_ns() - woke_ns);
        }
    }
    Ok(())
}

/// Puts the calling thread ahead of the hosts' processes; says `fifo`, or `normal` where the system
/// refuses. For a relay: a rank that spins must not add to the delay of
/// the wire. First-in-first-out real-time scheduling at its lowest priority suffices.
pub(crate) fn run_first() -> &'static str {
    let priority = libc::sched_param { sched_priority: 1 };
    // SAFETY: the call reads one sched_param, and 0 means the calling thread.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &priority) } {
        0 => "fifo",
        _ => "normal",
    }
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}
