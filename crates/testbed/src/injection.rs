//! Putting faults in, taking them out, and moving them with a cable.

use std::collections::BTreeMap;
use std::time::{Instant, SystemTime};

use serde::Serialize;

use crate::bed::Bed;
use crate::error::{Error, Result};
use crate::fault::{Fault, FaultSpec, Mechanism};
use crate::names::{Link, Target};
use crate::network::{host_name, set_carrier};
use crate::relay::{self, Report, Request, Rule, RuleHits};
use crate::schedule::Phases;
use crate::system::wait_ready;

/// What happens to the faults of two links whose cables are exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum OnSwap {
    /// They sit in the cables, and move with them.
    Moves,
    /// They sit in the NICs or ports, and stay.
    Stays,
}

/// A fault with what it has done so far.
#[derive(Clone, Debug, Serialize)]
pub struct FaultStatus {
    /// The fault.
    #[serde(flatten)]
    pub fault: Fault,
    /// Frames it looked at and acted on, where relays make it.
    pub hits: Option<RuleHits>,
}

impl Bed {
    /// Puts a fault in and returns its number.
    ///
    /// # Errors
    /// When the fault makes no sense here, or another one is in its way.
    pub fn add_fault(&mut self, spec: &FaultSpec) -> Result<u32> {
        let _lock = self.begin_change()?;
        spec.check(self.spec())?;
        self.refuse_overlap(spec)?;
        let id = self.state.next_fault;
        let fault = Fault { id, spec: spec.clone(), since: SystemTime::now(), driver: None };
        self.state.next_fault += 1;
        self.state.faults.push(fault);
        self.state.save()?;
        if let Err(e) = self.start(id) {
            self.take_out(id)?;
            return Err(e);
        }
        Ok(id)
    }

    /// Two faults that both hold one switch would take it from each other.
    fn refuse_overlap(&self, new: &FaultSpec) -> Result<()> {
        let links = |spec: &FaultSpec| self.spec().links_of(spec.target);
        let overlaps = |old: &&Fault| match (old.spec.mechanism(), new.mechanism()) {
            (Mechanism::Carrier, Mechanism::Carrier) => {
                links(&old.spec).iter().any(|link| links(new).contains(link))
            }
            (Mechanism::Quota(_), Mechanism::Quota(_)) => old.spec.target == new.target,
            (Mechanism::Freezer, Mechanism::Freezer) => old.spec.target == new.target,
            _ => false,
        };
        match self.state.faults.iter().find(overlaps) {
            None => Ok(()),
            Some(old) => Err(Error::Usage(format!(
                "fault {} ({} on {}) is there already; `clear {}` first",
                old.id, old.spec.kind, old.spec.target, old.id
            ))),
        }
    }

    /// Takes faults out: those with these numbers, or all. Returns how many there were.
    ///
    /// # Errors
    /// When there is no fault of a number.
    pub fn clear(&mut self, ids: Option<&[u32]>) -> Result<usize> {
        let _lock = self.begin_change()?;
        let present: Vec<u32> = self.state.faults.iter().map(|fault| fault.id).collect();
        let ids = ids.map_or(present.clone(), <[u32]>::to_vec);
        if let Some(id) = ids.iter().find(|id| !present.contains(id)) {
            return Err(Error::Usage(format!("there is no fault {id}; see `faults`")));
        }
        for id in &ids {
            self.take_out(*id)?;
        }
        Ok(ids.len())
    }

    fn take_out(&mut self, id: u32) -> Result<()> {
        self.stop(id)?;
        let links = self.links_of_fault(id);
        self.state.faults.retain(|fault| fault.id != id);
        self.state.save()?;
        self.settle(&links)
    }

    fn fault(&self, id: u32) -> Result<&Fault> {
        let found = self.state.faults.iter().find(|fault| fault.id == id);
        found.ok_or_else(|| Error::Usage(format!("there is no fault {id}; see `faults`")))
    }

    fn links_of_fault(&self, id: u32) -> Vec<Link> {
        self.fault(id).map(|fault| self.spec().links_of(fault.spec.target)).unwrap_or_default()
    }

    fn start(&mut self, id: u32) -> Result<()> {
        let spec = &self.fault(id)?.spec;
        match (spec.mechanism(), &spec.schedule) {
            (Mechanism::Relay, _) => self.settle(&self.links_of_fault(id)),
            (_, Some(_)) => self.start_driver(id),
            (_, None) => self.switch_fault(id, true),
        }
    }

    fn stop(&mut self, id: u32) -> Result<()> {
        let fault = self.fault(id)?;
        let mechanism = fault.spec.mechanism();
        if let Some(pid) = fault.driver {
            self.kill(pid);
        }
        if mechanism == Mechanism::Relay { Ok(()) } else { self.switch_fault(id, false) }
    }

    fn start_driver(&mut self, id: u32) -> Result<()> {
        let prefix = &self.spec().prefix;
        let arguments = ["drive".to_owned(), format!("--prefix={prefix}"), format!("--fault={id}")];
        let mut child = self.spawn_tool(&arguments, None)?;
        let ready = wait_ready(&mut child, &format!("the driver of fault {id}"), &self.log());
        let pid = child.id() as i32;
        self.adopt(child);
        for fault in self.state.faults.iter_mut().filter(|fault| fault.id == id) {
            fault.driver = Some(pid);
        }
        self.state.save()?;
        ready
    }

    /// Turns a fault that no relay makes on or off.
    fn switch_fault(&self, id: u32, on: bool) -> Result<()> {
        let spec = &self.fault(id)?.spec;
        let host = match spec.target {
            Target::Host(host) => host_name(host),
            _ => String::new(),
        };
        match spec.mechanism() {
            Mechanism::Relay => Ok(()),
            Mechanism::Carrier => {
                self.batch("switch", "ip", &set_carrier(&self.links_of_fault(id), !on))
            }
            Mechanism::Quota(cores) => self.cgroups.set_cores(&host, on.then_some(cores)),
            Mechanism::Freezer => self.cgroups.set_frozen(&host, on),
        }
    }

    /// Follows the schedule of a fault until it ends; the work of a driver process.
    ///
    /// # Errors
    /// When there is no such fault, or the system refuses to switch it.
    pub fn drive(&self, id: u32) -> Result<()> {
        let spec = &self.fault(id)?.spec;
        let Some(schedule) = &spec.schedule else { return Ok(()) };
        let mut phases = Phases::new(schedule, spec.seed);
        crate::namespace::say_ready()?;
        let start = Instant::now();
        loop {
            let on = phases.is_on_at(start.elapsed());
            self.switch_fault(id, on)?;
            let Some(until) = phases.until() else { return Ok(()) };
            std::thread::sleep(until.saturating_sub(start.elapsed()));
        }
    }

    /// Brings the relays of these links in line with the faults: puts in those that are missing,
    /// tells each its rules, takes out those with nothing to do.
    pub(crate) fn settle(&mut self, links: &[Link]) -> Result<()> {
        let rules: BTreeMap<Link, Vec<Rule>> =
            links.iter().map(|link| (*link, self.rules_on(*link))).collect();
        let (wanted, idle): (Vec<Link>, Vec<Link>) = rules
            .keys()
            .partition(|link| self.state.relayed.contains(link) || !rules[link].is_empty());
        let runs = |link: &Link| self.state.relays.contains_key(link);
        let missing: Vec<Link> = wanted.iter().copied().filter(|link| !runs(link)).collect();
        let spare: Vec<Link> = idle.into_iter().filter(runs).collect();
        if !missing.is_empty() {
            self.insert_relays(&missing)?;
        }
        for link in wanted {
            let rules = rules.get(&link).cloned().unwrap_or_default();
            relay::ask(&relay::socket_path(&self.directory(), link), &Request::Rules(rules))?;
        }
        self.remove_relays(&spare)
    }

    /// Puts a relay on a link that stays there without a fault.
    pub(crate) fn put_relay(&mut self, link: Link) -> Result<()> {
        let _lock = self.begin_change()?;
        self.state.relayed.insert(link);
        self.settle(&[link])
    }

    fn rules_on(&self, link: Link) -> Vec<Rule> {
        let latency = self.spec().latency;
        let base = (!latency.is_zero()).then(|| Rule::latency(latency));
        let faults = self.state.faults.iter().flat_map(|fault| fault.rules_on(link, self.spec()));
        base.into_iter().chain(faults).collect()
    }

    /// Exchanges the cables of two links, with what sits in them. Both links lose their carrier
    /// for a moment, and the schedules and draws of faults that move start again.
    ///
    /// # Errors
    /// When the bed has no such links.
    pub fn swap(&mut self, a: Link, b: Link, faults: OnSwap) -> Result<()> {
        let _lock = self.begin_change()?;
        self.spec().check_target(Target::Link(a))?;
        self.spec().check_target(Target::Link(b))?;
        if a == b {
            return Err(Error::Usage(format!("{a} has one cable: name two links to exchange")));
        }
        self.batch("switch", "ip", &set_carrier(&[a, b], false))?;
        let moved = if faults == OnSwap::Moves { self.faults_on(&[a, b]) } else { Vec::new() };
        for id in &moved {
            self.stop(*id)?;
        }
        self.exchange(a, b, &moved);
        self.state.save()?;
        self.settle(&[a, b])?;
        self.batch("switch", "ip", &set_carrier(&[a, b], true))?;
        for id in moved {
            self.start(id)?;
        }
        self.restore_down(&[a, b])
    }

    /// Faults that sit on exactly one of these links.
    fn faults_on(&self, links: &[Link]) -> Vec<u32> {
        let on = |fault: &&Fault| links.iter().any(|link| fault.spec.target == Target::Link(*link));
        self.state.faults.iter().filter(on).map(|fault| fault.id).collect()
    }

    fn exchange(&mut self, a: Link, b: Link, faults: &[u32]) {
        let other = |link: Link| if link == a { b } else { a };
        for fault in self.state.faults.iter_mut().filter(|fault| faults.contains(&fault.id)) {
            if let Target::Link(link) = fault.spec.target {
                fault.spec.target = Target::Link(other(link));
            }
        }
        let here: Vec<Link> =
            [a, b].into_iter().filter(|link| self.state.relayed.remove(link)).collect();
        self.state.relayed.extend(here.into_iter().map(other));
    }

    /// Takes the carrier again from links that a fault without a schedule holds down.
    fn restore_down(&self, links: &[Link]) -> Result<()> {
        let held = |fault: &&Fault| {
            fault.spec.mechanism() == Mechanism::Carrier && fault.spec.schedule.is_none()
        };
        let faults = self.state.faults.iter().filter(held);
        let down: Vec<Link> = faults
            .flat_map(|fault| self.spec().links_of(fault.spec.target))
            .filter(|link| links.contains(link))
            .collect();
        self.batch("switch", "ip", &set_carrier(&down, false))
    }

    /// The faults that are in the bed, with what they have done.
    ///
    /// # Errors
    /// When a relay does not answer.
    pub fn faults(&self) -> Result<Vec<FaultStatus>> {
        let mut hits: BTreeMap<u32, RuleHits> = BTreeMap::new();
        for report in self.relays()?.values() {
            for rule in report.send.rules.iter().chain(&report.receive.rules) {
                let sum = hits.entry(rule.fault).or_default();
                *sum = RuleHits {
                    fault: rule.fault,
                    seen: sum.seen + rule.seen,
                    hit: sum.hit + rule.hit,
                };
            }
        }
        let status = |fault: &Fault| FaultStatus {
            fault: fault.clone(),
            hits: hits.get(&fault.id).copied(),
        };
        Ok(self.state.faults.iter().map(status).collect())
    }

    /// What each relay has seen and done.
    ///
    /// # Errors
    /// When a relay does not answer.
    pub fn relays(&self) -> Result<BTreeMap<Link, Report>> {
        let directory = self.directory();
        let ask = |link: &Link| {
            let report = relay::ask(&relay::socket_path(&directory, *link), &Request::Report)?;
            Ok((*link, report))
        };
        self.state.relays.keys().map(ask).collect()
    }
}
