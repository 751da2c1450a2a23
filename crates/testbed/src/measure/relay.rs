//! Measures what a relay without a fault adds to a frame's way, by means that know nothing of the
//! relay: the sender's clock before the send call, and the kernel's time stamp of the arrival.

use std::io;
use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use hpcbench_model::Histogram;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use super::{Machine, Output};
use crate::bed::ScopedBed;
use crate::error::{Error, Result, Tried};
use crate::names::{Link, Prefix};
use crate::relay::{Quantiles, run_first};
use crate::spec::BedSpec;

/// How `measure relay` measures.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RelayMeasurement {
    /// Frames per second
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,
    /// Bytes of UDP payload in each frame
    #[arg(long, default_value_t = 1400, value_parser = clap::value_parser!(u32).range(16..=8900))]
    bytes: u32,
    /// Frames of one round
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..=20_000))]
    frames: u32,
    /// Rounds on each of the two rails, taken in turn
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    #[command(flatten)]
    output: Output,
}

const METHOD: &str = "Two emulated hosts with two rails; the link h0/nic1 has a relay without a \
    fault, nothing else has one. Rounds of UDP datagrams from h0 to h1 go over rail 0 and rail 1 \
    in turn, after one round of each that is not counted. One-way time: from the sender's CLOCK_REALTIME just before send() to the kernel's \
    SO_TIMESTAMPNS stamp when the frame reaches h1's stack, both of one clock. The sender sleeps \
    until each frame's time, under real-time scheduling as the relay; a time it has missed by a \
    whole gap is left out, so that no burst is sent. added_p99_ns is the 99th percentile with the \
    relay less the median without, so that it can only be too large. flood_frames_per_second: \
    16-byte datagrams sent as fast as one thread can for a second, counted by the relay.";

#[derive(Debug, Serialize)]
struct Figures {
    what: &'static str,
    method: &'static str,
    machine: Machine,
    frames_per_second: u32,
    payload_bytes: u32,
    rounds: u32,
    without: Times,
    with: Times,
    added_p50_ns: i64,
    added_p99_ns: i64,
    /// What the relay says of itself.
    own_passing: Option<Quantiles>,
    scheduling: String,
    flood_frames_per_second: f64,
}

#[derive(Debug, Serialize)]
struct Times {
    sent: u64,
    lost: u64,
    achieved_frames_per_second: f64,
    #[serde(flatten)]
    quantiles: Quantiles,
}

/// Makes a bed, measures, removes the bed, and prints the result as JSON.
pub(super) fn run(prefix: &Prefix, options: &RelayMeasurement) -> Result<()> {
    let machine = Machine::this();
    let rate = "100gbit".parse()?;
    let mut bed = ScopedBed::up(&BedSpec { rate, ..BedSpec::new(prefix.clone(), 2, 2) })?;
    let relayed = Link { host: 0, nic: 1 };
    bed.put_relay(relayed)?;
    let mut rails = [Rail::open(&bed, 0)?, Rail::open(&bed, 1)?];
    // The kernel begins to stamp frames a little after it was asked to.
    take_turns(&mut rails, &RelayMeasurement { rounds: 1, ..options.clone() })?;
    rails.iter_mut().for_each(Rail::forget);
    take_turns(&mut rails, options)?;
    let report = bed.relays()?.remove(&relayed).unwrap_or_default();
    let [without, with] = rails.each_ref().map(Rail::times);
    let (without, with) = (without?, with?);
    let difference = |a: u64, b: u64| a as i64 - b as i64;
    let figures = Figures {
        what: "one-way time between two emulated hosts with and without a relay",
        method: METHOD,
        machine,
        frames_per_second: options.rate,
        payload_bytes: options.bytes,
        rounds: options.rounds,
        added_p50_ns: difference(with.quantiles.p50_ns, without.quantiles.p50_ns),
        added_p99_ns: difference(with.quantiles.p99_ns, without.quantiles.p50_ns),
        own_passing: report.send.passing,
        scheduling: report.scheduling,
        flood_frames_per_second: flood(&bed, &rails[1], relayed)?,
        without,
        with,
    };
    options.output.write(&figures)
}

/// Wait after each round for the last frames.
const SETTLE: Duration = Duration::from_millis(20);

/// Sender and receiver on one rail.
struct Rail {
    sender: UdpSocket,
    receiver: UdpSocket,
    times: Histogram,
    sent: u64,
    sending: Duration,
}

impl Rail {
    fn open(bed: &ScopedBed, nic: usize) -> Result<Rail> {
        let bind = |host: usize| {
            let address = SocketAddrV4::new(bed.address(Link { host, nic }), 7000);
            bed.in_network(&format!("h{host}"), || UdpSocket::bind(address))?
                .tried(|| format!("open a socket at {address}"))
        };
        let (sender, receiver) = (bind(0)?, bind(1)?);
        let to = SocketAddrV4::new(bed.address(Link { host: 1, nic }), 7000);
        sender.connect(to).tried(|| format!("connect to {to}"))?;
        receiver.set_nonblocking(true).tried(|| "set a socket to not block".to_owned())?;
        // Holds a whole round, so that the receiver need not run while the frames are on the way.
        set_option(&receiver, libc::SO_RCVBUFFORCE, 512 << 20)?;
        set_option(&receiver, libc::SO_TIMESTAMPNS, 1)?;
        Ok(Rail { sender, receiver, times: Histogram::new(), sent: 0, sending: Duration::ZERO })
    }

    fn round(&mut self, options: &RelayMeasurement) -> Result<()> {
        let mut payload = vec![0; options.bytes as usize];
        let gap = Duration::from_secs(1) / options.rate;
        let start = Instant::now();
        for number in 0..options.frames {
            let elapsed = start.elapsed();
            if elapsed >= gap * (number + 1) {
                continue;
            }
            std::thread::sleep((gap * number).saturating_sub(elapsed));
            payload[..8].copy_from_slice(&now_ns().to_le_bytes());
            self.sender.send(&payload).tried(|| "send a frame".to_owned())?;
            self.sent += 1;
        }
        self.sending += start.elapsed();
        std::thread::sleep(SETTLE);
        while let Some((sent_ns, arrived_ns)) = receive(&self.receiver)? {
            self.times.record_ns(arrived_ns.saturating_sub(sent_ns));
        }
        Ok(())
    }

    fn forget(&mut self) {
        self.times.clear();
        (self.sent, self.sending) = (0, Duration::ZERO);
    }

    fn times(&self) -> Result<Times> {
        let nothing = || Error::Broken("no frame arrived".to_owned());
        Ok(Times {
            sent: self.sent,
            lost: self.sent - self.times.count(),
            achieved_frames_per_second: (self.sent as f64 / self.sending.as_secs_f64()).round(),
            quantiles: Quantiles::of(&self.times).ok_or_else(nothing)?,
        })
    }
}

/// Sends the rounds of both rails in turn, from a thread that nothing else of the machine's work
/// pushes aside.
fn take_turns(rails: &mut [Rail; 2], options: &RelayMeasurement) -> Result<()> {
    let send = || {
        run_first();
        (0..options.rounds).try_for_each(|_| rails.iter_mut().try_for_each(|r| r.round(options)))
    };
    std::thread::scope(|scope| scope.spawn(send).join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// What the relay carries when it is given more than it can.
fn flood(bed: &ScopedBed, rail: &Rail, relayed: Link) -> Result<f64> {
    let carried = || -> Result<u64> {
        Ok(bed.relays()?.get(&relayed).map_or(0, |report| report.send.frames))
    };
    let (before, start) = (carried()?, Instant::now());
    while start.elapsed() < Duration::from_secs(1) {
        // A full queue on the way is what the flood is for.
        let _ = rail.sender.send(&[0; 16]);
    }
    let elapsed = start.elapsed();
    Ok(((carried()? - before) as f64 / elapsed.as_secs_f64()).round())
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Realtime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn set_option(socket: &UdpSocket, option: libc::c_int, value: libc::c_int) -> Result<()> {
    // SAFETY: the option takes one int, and its size is given.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    if set == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error()).tried(|| "set up a socket".to_owned())
    }
}

/// The next frame that has arrived: when it was sent, by its own words, and when the kernel saw
/// it, both in nanoseconds of CLOCK_REALTIME.
fn receive(socket: &UdpSocket) -> Result<Option<(u64, u64)>> {
    let mut sent = [0_u8; 8];
    let mut control = [0_u64; 8];
    let mut part = libc::iovec { iov_base: sent.as_mut_ptr().cast(), iov_len: sent.len() };
    // SAFETY: all zero is a valid msghdr, one that points nowhere.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the message's pointers lead to buffers of the sizes it gives, which outlive the call.
    if unsafe { libc::recvmsg(socket.as_raw_fd(), &mut message, 0) } < 0 {
        let e = io::Error::last_os_error();
        let empty = e.kind() == io::ErrorKind::WouldBlock;
        return if empty { Ok(None) } else { Err(e).tried(|| "receive a frame".to_owned()) };
    }
    let missing = || Error::Broken("the kernel gave a frame no time stamp".to_owned());
    Ok(Some((u64::from_le_bytes(sent), stamp(&message).ok_or_else(missing)?)))
}

fn stamp(message: &libc::msghdr) -> Option<u64> {
    // SAFETY: recvmsg filled the control buffer, which is aligned for a cmsghdr; the pointer is
    // null or leads to a whole header in it.
    let header = unsafe { libc::CMSG_FIRSTHDR(message).as_ref() }?;
    if (header.cmsg_level, header.cmsg_type) != (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
        return None;
    }
    // SAFETY: a SCM_TIMESTAMPNS message carries one timespec; it may lie unaligned.
    let at = unsafe { libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned() };
    Some(at.tv_sec as u64 * 1_000_000_000 + at.tv_nsec as u64)
}
