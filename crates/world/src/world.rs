use mpi::collective::SystemOperation;
use mpi::datatype::PartitionMut;
use mpi::environment::Universe;
use mpi::topology::{Color, Communicator as _, SimpleCommunicator};
use mpi::traits::{AsRaw, CommunicatorCollectives, Destination, Root, Source};

use crate::{Failure, HostFacts, Launcher};

/// One rank of the world, as every rank knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its host.
    pub host: String,
    /// Its number among the ranks of its host.
    pub local_rank: usize,
    /// Its process id.
    pub pid: u32,
}

/// The ranks that MPI started. Dropping it ends MPI.
pub struct World {
    comm: SimpleCommunicator,
    rank: usize,
    launcher: Launcher,
    facts: HostFacts,
    members: Vec<Member>,
    // Last: ends MPI after everything that uses it.
    _universe: Universe,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World")
            .field("rank", &self.rank)
            .field("members", &self.members)
            .finish_non_exhaustive()
    }
}

impl World {
    /// Starts MPI. The process may have other threads; only this one may use the world.
    ///
    /// # Errors
    /// When MPI was started before, or when the launcher started several processes of which this
    /// MPI knows nothing (a binary built for another MPI): then only the launcher's rank 0 has a
    /// message, the others an empty one.
    pub fn start() -> Result<World, Failure> {
        let launcher = Launcher::detect();
        let (universe, _) = mpi::initialize_with_threading(mpi::Threading::Funneled)
            .ok_or_else(|| Failure::cannot_run("MPI was already started in this process"))?;
        let comm = universe.world();
        let rank = comm.rank() as usize;
        if comm.size() == 1
            && let Some(message) = launcher.explain_lone_world(&World::library())
        {
            return Err(Failure::usage(if launcher.rank == 0 { message } else { String::new() }));
        }
        let facts = HostFacts::read();
        let mut world =
            World { comm, rank, launcher, facts, members: Vec::new(), _universe: universe };
        let own = format!("{} {} {}", std::process::id(), world.facts.identity, world.facts.name);
        let hosts = world.all_gather_text(&own);
        world.members = members(&hosts);
        Ok(world)
    }

    /// First line of the MPI library's own version text.
    pub fn library() -> String {
        let text = mpi::environment::library_version().unwrap_or_default();
        let line = text.lines().next().unwrap_or_default();
        // Open MPI puts package, identity and repository into the same line, after commas.
        line.split(',').next().unwrap_or_default().trim().to_owned()
    }

    /// The version of the MPI standard that the library follows.
    pub fn standard() -> String {
        let (major, minor) = mpi::environment::version();
        format!("{major}.{minor}")
    }

    /// This rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Number of ranks.
    pub fn size(&self) -> usize {
        self.comm.size() as usize
    }

    /// Whether this is rank 0, which prints and writes.
    pub fn is_first(&self) -> bool {
        self.rank == 0
    }

    /// What started the ranks.
    pub fn launcher(&self) -> &Launcher {
        &self.launcher
    }

    /// Facts about this rank's host.
    pub fn facts(&self) -> &HostFacts {
        &self.facts
    }

    /// All ranks, in order.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// One rank.
    pub fn member(&self, rank: usize) -> &Member {
        &self.members[rank]
    }

    /// This rank's host, as [`World::members`] name it.
    pub fn host(&self) -> &str {
        &self.members[self.rank].host
    }

    /// Ranks on this rank's host.
    pub fn local_size(&self) -> usize {
        let host = self.host();
        self.members.iter().filter(|member| member.host == host).count()
    }

    /// Whether all ranks share one host, and so one clock.
    pub fn one_host(&self) -> bool {
        self.members.iter().all(|member| member.host == self.members[0].host)
    }

    /// The communicator's handle, for the MPI backend only.
    pub fn as_raw(&self) -> mpi::ffi::MPI_Comm {
        self.comm.as_raw()
    }

    /// Waits until every rank has arrived.
    pub fn barrier(&self) {
        self.comm.barrier();
    }

    /// Rank 0's value, on every rank.
    pub fn broadcast_u64s(&self, values: &mut [u64]) {
        self.comm.process_at_rank(0).broadcast_into(values);
    }

    /// Rank 0's text, on every rank.
    pub fn broadcast_text(&self, text: &str) -> String {
        let mut length = [text.len() as u64];
        self.broadcast_u64s(&mut length);
        if length[0] == 0 {
            return String::new();
        }
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(length[0] as usize, 0);
        self.comm.process_at_rank(0).broadcast_into(&mut bytes[..]);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Every rank's text, on every rank.
    pub fn all_gather_text(&self, text: &str) -> Vec<String> {
        // Never empty: the address of an empty slice is 1, which is Open MPI's MPI_IN_PLACE.
        let own = format!("{text}\n");
        let mut lengths = vec![0_i32; self.size()];
        self.comm.all_gather_into(&(own.len() as i32), &mut lengths[..]);
        let starts: Vec<i32> = lengths
            .iter()
            .scan(0, |at, length| Some(std::mem::replace(at, *at + length)))
            .collect();
        let mut bytes = vec![0_u8; lengths.iter().sum::<i32>() as usize];
        let mut parts = PartitionMut::new(&mut bytes[..], &lengths[..], &starts[..]);
        self.comm.all_gather_varcount_into(own.as_bytes(), &mut parts);
        let text_at = |(start, length): (&i32, &i32)| {
            String::from_utf8_lossy(&bytes[*start as usize..(*start + *length - 1) as usize])
                .into_owned()
        };
        starts.iter().zip(&lengths).map(text_at).collect()
    }

    /// Every rank's number, on rank 0; elsewhere `None`.
    pub fn gather_f64(&self, value: f64) -> Option<Vec<f64>> {
        let root = self.comm.process_at_rank(0);
        if self.is_first() {
            let mut values = vec![0.0; self.size()];
            root.gather_into_root(&value, &mut values[..]);
            Some(values)
        } else {
            root.gather_into(&value);
            None
        }
    }

    /// Element-wise largest of every rank's numbers, into `out` on rank 0; elsewhere `out` stays. Each
    /// is at most [`i64::MAX`]: MPICH 4.0 takes unsigned integers for signed ones here.
    pub fn reduce_max(&self, values: &[u64], out: &mut [u64]) {
        debug_assert!(values.iter().all(|value| i64::try_from(*value).is_ok()));
        let root = self.comm.process_at_rank(0);
        if self.is_first() {
            root.reduce_into_root(values, out, SystemOperation::max());
        } else {
            root.reduce_into(values, SystemOperation::max());
        }
    }

    /// Sum over all ranks, on every rank.
    pub fn all_sum(&self, value: u64) -> u64 {
        let mut sum = 0;
        self.comm.all_reduce_into(&value, &mut sum, SystemOperation::sum());
        sum
    }

    /// Hands every rank's bytes to `take` on rank 0, rank by rank, so that rank 0 holds one at a time.
    pub fn stream_to_first(&self, bytes: &[u8], mut take: impl FnMut(usize, &[u8])) {
        if !self.is_first() {
            self.comm.process_at_rank(0).send(bytes);
            return;
        }
        take(0, bytes);
        for rank in 1..self.size() {
            let (theirs, _) = self.comm.process_at_rank(rank as i32).receive_vec::<u8>();
            take(rank, &theirs);
        }
    }

    /// Sum of `bytes` over the ranks of this rank's host.
    pub fn sum_on_host(&self, bytes: u64) -> u64 {
        let host = self.host();
        let first = self.members.iter().position(|member| member.host == host).unwrap_or(0);
        let Some(local) = self.comm.split_by_color(Color::with_value(first as i32)) else {
            return bytes;
        };
        let mut sum = 0;
        local.all_reduce_into(&bytes, &mut sum, SystemOperation::sum());
        sum
    }
}

/// Members from each rank's `PID IDENTITY HOST`. Of hosts with the same name, such as `localhost`,
/// the second is shown as `localhost~2`.
fn members(texts: &[String]) -> Vec<Member> {
    let mut members: Vec<Member> = Vec::with_capacity(texts.len());
    let mut seen: Vec<(&str, &str, String)> = Vec::new();
    for text in texts {
        let mut words = text.splitn(3, ' ');
        let mut word = || words.next().unwrap_or_default();
        let (pid, identity, name) = (word(), word(), word());
        let known = seen
            .iter()
            .find(|host| (host.0, host.1) == (identity, name))
            .map(|host| host.2.clone());
        let host = known.unwrap_or_else(|| {
            let same = seen.iter().filter(|host| host.1 == name).count();
            let shown = if same == 0 { name.to_owned() } else { format!("{name}~{}", same + 1) };
            seen.push((identity, name, shown.clone()));
            shown
        });
        let local_rank = members.iter().filter(|member| member.host == host).count();
        members.push(Member { host, local_rank, pid: pid.parse().unwrap_or(0) });
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_ranks_count_up_on_each_host() {
        let texts = ["10 a h0", "11 b h1", "12 a h0", "13 b h1"].map(str::to_owned);
        let members = members(&texts);
        assert_eq!(members.iter().map(|m| m.local_rank).collect::<Vec<_>>(), [0, 0, 1, 1]);
        assert_eq!(members[2], Member { host: "h0".to_owned(), local_rank: 1, pid: 12 });
    }

    #[test]
    fn hosts_of_one_name_are_told_apart() {
        let texts = ["1 a localhost", "2 b localhost", "3 a localhost"].map(str::to_owned);
        let hosts: Vec<String> = members(&texts).into_iter().map(|member| member.host).collect();
        assert_eq!(hosts, ["localhost", "localhost~2", "localhost"]);
    }
}
