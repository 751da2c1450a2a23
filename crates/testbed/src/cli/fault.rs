use std::time::Duration;

use clap::{Args, Subcommand};

use crate::error::{Error, Result};
use crate::fault::{Direction, FaultSpec, Kind};
use crate::names::Target;
use crate::schedule::Schedule;
use crate::units::{Rate, Share, duration};

/// A fault. TARGET is a host (h2: all its links, or its processes), a link (h2/nic1), a path
/// (h2/nic1:h3/nic1: what the first sends the second) or a rail (rail1).
#[derive(Debug, Subcommand)]
pub(super) enum FaultCommand {
    /// Drop a share of the frames
    Loss(WithShare),
    /// Flip a bit in a share of the frames; the receiver's checksum throws them away
    Corrupt(WithShare),
    /// Let frames through no faster than this
    Rate {
        target: Target,
        /// Such as 100mbit
        rate: Rate,
        #[command(flatten)]
        common: Common,
    },
    /// Hold every frame for a time
    Delay {
        target: Target,
        /// Such as 2ms
        #[arg(value_parser = duration)]
        time: Duration,
        #[command(flatten)]
        common: Common,
    },
    /// Hold a share of the frames for a time; those behind them wait
    Jitter {
        target: Target,
        /// Such as 1%
        share: Share,
        /// Such as 100ms
        #[arg(value_parser = duration)]
        time: Duration,
        #[command(flatten)]
        common: Common,
    },
    /// Take the carrier from links; one way or on a path, drop everything
    Down {
        target: Target,
        #[command(flatten)]
        common: Common,
    },
    /// As down, on and off: needs --on and --off
    Flap {
        target: Target,
        #[command(flatten)]
        common: Common,
    },
    /// Give the host's processes so many cores in all
    SlowHost {
        target: Target,
        /// Such as 0.5
        cores: f64,
        #[command(flatten)]
        common: Common,
    },
    /// Stop the host's processes
    Pause {
        target: Target,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Debug, Args)]
pub(super) struct WithShare {
    target: Target,
    /// Such as 2% or 0.02
    share: Share,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
pub(super) struct Common {
    /// send, receive or both, seen from the host
    #[arg(long, default_value = "both")]
    direction: Direction,
    /// Decides which frames are hit, and the times of a random schedule
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How long the fault is on each time; without, it stays on
    #[arg(long, value_parser = duration, requires = "off")]
    on: Option<Duration>,
    /// How long it is off between two times
    #[arg(long, value_parser = duration, requires = "on")]
    off: Option<Duration>,
    /// Wait before the first time
    #[arg(long, value_parser = duration, default_value = "0s", requires = "on")]
    after: Duration,
    /// How many times; without, for ever
    #[arg(long, requires = "on")]
    times: Option<u32>,
    /// Draw each off time at random, with --off as the mean
    #[arg(long, requires = "on")]
    random: bool,
}

impl FaultCommand {
    /// The fault that is meant.
    pub fn spec(self) -> Result<FaultSpec> {
        let flap = matches!(self, FaultCommand::Flap { .. });
        let (kind, target, common) = match self {
            FaultCommand::Loss(f) => (Kind::Loss(f.share), f.target, f.common),
            FaultCommand::Corrupt(f) => (Kind::Corrupt(f.share), f.target, f.common),
            FaultCommand::Rate { target, rate, common } => (Kind::Rate(rate), target, common),
            FaultCommand::Delay { target, time, common } => (Kind::Delay(time), target, common),
            FaultCommand::Jitter { target, share, time, common } => {
                (Kind::Jitter(share, time), target, common)
            }
            FaultCommand::Down { target, common } | FaultCommand::Flap { target, common } => {
                (Kind::Down, target, common)
            }
            FaultCommand::SlowHost { target, cores, common } => {
                (Kind::SlowHost(cores), target, common)
            }
            FaultCommand::Pause { target, common } => (Kind::Pause, target, common),
        };
        let schedule = common.schedule();
        if flap && schedule.is_none() {
            return Err(Error::Usage(
                "flap: say how long, such as --on 200ms --off 2s (on is the time without carrier)"
                    .to_owned(),
            ));
        }
        Ok(FaultSpec { kind, target, direction: common.direction, seed: common.seed, schedule })
    }
}

impl Common {
    fn schedule(&self) -> Option<Schedule> {
        let (after, times, random) = (self.after, self.times, self.random);
        self.on.zip(self.off).map(|(on, off)| Schedule { after, on, off, times, random })
    }
}
