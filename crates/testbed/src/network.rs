//! What `ip`, `bridge` and `tc` are told to build a bed's networks: text for their batch modes.

use std::fmt::Write;

use crate::address::{self, Mac};
use crate::names::Link;
use crate::spec::BedSpec;

/// Interface name of a host's end on the management network.
pub(crate) const MANAGEMENT: &str = "mgmt0";

/// A batch for `ip` in the switch: bridges, and a cable to every NIC and management interface.
/// `pid_of` gives the process that holds a host's namespaces.
pub(crate) fn switch_links(spec: &BedSpec, pid_of: impl Fn(&str) -> i32) -> String {
    let mut batch = String::from("link set lo up\n");
    add_bridge(&mut batch, "mgmt", 1500);
    for rail in 0..spec.nics {
        add_bridge(&mut batch, &format!("rail{rail}"), spec.mtu);
    }
    for link in spec.links() {
        let peer = (format!("nic{}", link.nic), Mac::of(link), pid_of(&host_name(link.host)));
        add_cable(&mut batch, &link.port(), peer, spec.mtu);
        plug(&mut batch, &link.port(), &format!("rail{}", link.nic));
    }
    for (name, mac) in management_macs(spec) {
        let port = format!("{name}-mgmt");
        add_cable(&mut batch, &port, (MANAGEMENT.to_owned(), mac, pid_of(&name)), 1500);
        plug(&mut batch, &port, "mgmt");
    }
    batch
}

fn add_bridge(batch: &mut String, name: &str, mtu: usize) {
    // No multicast snooping: its queries would be traffic that nobody sent.
    line(batch, &format!("link add {name} type bridge mcast_snooping 0"));
    line(batch, &format!("link set {name} mtu {mtu} up"));
}

/// A pair of interfaces that carry one frame at a time, as a wire does: without `gso_max_segs` a
/// loss would hit 64 KiB at once.
fn add_cable(batch: &mut String, port: &str, (name, mac, pid): (String, Mac, i32), mtu: usize) {
    line(
        batch,
        &format!(
            "link add {port} mtu {mtu} gso_max_segs 1 type veth peer name {name} mtu {mtu} \
             gso_max_segs 1 address {mac} netns {pid}"
        ),
    );
    line(batch, &format!("link set {port} up"));
}

/// Joins a port to its bridge. The bridge knows where every address is and floods nothing, so no
/// frame goes where it should not.
fn plug(batch: &mut String, port: &str, bridge: &str) {
    line(batch, &format!("link set {port} master {bridge}"));
    line(batch, &format!("link set {port} type bridge_slave learning off flood off"));
}

/// A batch for `bridge` in the switch: which address is behind which port.
pub(crate) fn switch_addresses(spec: &BedSpec) -> String {
    let nics = spec.links().map(|link| (Mac::of(link), link.port()));
    let management = management_macs(spec).into_iter().map(|(n, mac)| (mac, format!("{n}-mgmt")));
    nics.chain(management).map(|(mac, port)| behind(mac, &port)).collect()
}

/// `replace`, since a link that gets or loses a relay is known to the bridge already.
fn behind(mac: Mac, port: &str) -> String {
    format!("fdb replace {mac} dev {port} master static\n")
}

/// A batch for `tc` in the switch: the rate at which each NIC receives.
pub(crate) fn switch_rates(spec: &BedSpec) -> String {
    spec.links().map(|link| shape(spec, &link.port())).collect()
}

/// A token bucket at the nominal rate. Its burst is seven frames, so that it does not add a step of
/// its own to a single message; its queue holds 50 ms.
fn shape(spec: &BedSpec, interface: &str) -> String {
    format!(
        "qdisc add dev {interface} root tbf rate {}bit burst 65536 latency 50ms\n",
        spec.rate.as_bits_per_second()
    )
}

/// A batch for `ip` in a host: its addresses, and those of everyone it can reach, so that no
/// address resolution is mixed into the traffic.
pub(crate) fn host_addresses(spec: &BedSpec, host: usize) -> String {
    let mut batch = String::from("link set lo up\n");
    for nic in 0..spec.nics {
        let own = address::of_link(Link { host, nic });
        line(&mut batch, &format!("link set nic{nic} up"));
        line(&mut batch, &format!("addr add {own}/24 dev nic{nic}"));
        for other in (0..spec.hosts).filter(|other| *other != host) {
            let link = Link { host: other, nic };
            neighbour(&mut batch, address::of_link(link), Mac::of(link), &format!("nic{nic}"));
        }
    }
    management(&mut batch, spec, address::of_management(host));
    batch
}

/// A batch for `ip` in the head.
pub(crate) fn head_addresses(spec: &BedSpec) -> String {
    let mut batch = String::from("link set lo up\n");
    management(&mut batch, spec, address::HEAD);
    batch
}

fn management(batch: &mut String, spec: &BedSpec, own: std::net::Ipv4Addr) {
    line(batch, &format!("link set {MANAGEMENT} up"));
    line(batch, &format!("addr add {own}/24 dev {MANAGEMENT}"));
    let hosts = (0..spec.hosts).map(|h| (address::of_management(h), management_mac(h)));
    let head = (address::HEAD, HEAD_MAC);
    for (address, mac) in hosts.chain([head]).filter(|(address, _)| *address != own) {
        neighbour(batch, address, mac, MANAGEMENT);
    }
}

fn neighbour(batch: &mut String, address: std::net::Ipv4Addr, mac: Mac, interface: &str) {
    line(batch, &format!("neigh add {address} lladdr {mac} dev {interface} nud permanent"));
}

/// A batch for `tc` in a host: the rate at which each NIC sends.
pub(crate) fn host_rates(spec: &BedSpec) -> String {
    (0..spec.nics).map(|nic| shape(spec, &format!("nic{nic}"))).collect()
}

/// The two ends of a link's relay, and the bridge of two ports that joins its near end to the
/// cable. All in the switch.
pub(crate) struct RelayNames {
    pub host_tap: String,
    pub rail_tap: String,
    pub joint: String,
}

impl RelayNames {
    pub fn of(link: Link) -> Self {
        let port = link.port();
        RelayNames {
            host_tap: format!("{port}-h"),
            rail_tap: format!("{port}-r"),
            joint: format!("{port}-j"),
        }
    }
}

/// Batches for `ip` and `bridge` that put a running relay between a cable and its rail.
pub(crate) fn insert_relay(spec: &BedSpec, link: Link) -> (String, String) {
    let RelayNames { host_tap, rail_tap, joint } = RelayNames::of(link);
    let mut batch = String::new();
    add_bridge(&mut batch, &joint, spec.mtu);
    for tap in [&host_tap, &rail_tap] {
        line(&mut batch, &format!("link set {tap} mtu {} up", spec.mtu));
    }
    plug(&mut batch, &rail_tap, &format!("rail{}", link.nic));
    for end in [&host_tap, &link.port()] {
        line(&mut batch, &format!("link set {end} master {joint}"));
        // Two ports: what comes in at one goes out at the other.
        line(&mut batch, &format!("link set {end} type bridge_slave learning off flood on"));
    }
    (batch, behind(Mac::of(link), &rail_tap))
}

/// Batches for `ip` and `bridge` that take a relay out again; its process is killed afterwards.
pub(crate) fn remove_relay(link: Link) -> (String, String) {
    let mut batch = String::new();
    plug(&mut batch, &link.port(), &format!("rail{}", link.nic));
    line(&mut batch, &format!("link del {}", RelayNames::of(link).joint));
    (batch, behind(Mac::of(link), &link.port()))
}

/// A batch for `ip` in the switch that takes the carrier from links or gives it back.
pub(crate) fn set_carrier(links: &[Link], up: bool) -> String {
    let state = if up { "up" } else { "down" };
    links.iter().map(|link| format!("link set {} {state}\n", link.port())).collect()
}

/// The hosts file that all hosts of a bed see.
pub(crate) fn hosts_file(spec: &BedSpec) -> String {
    let mut text = String::from("127.0.0.1 localhost\n");
    for host in 0..spec.hosts {
        line(&mut text, &format!("{} h{host}", address::of_management(host)));
    }
    for link in spec.links() {
        line(&mut text, &format!("{} {}", address::of_link(link), link.port()));
    }
    line(&mut text, &format!("{} head", address::HEAD));
    text
}

/// The name of a host.
pub(crate) fn host_name(host: usize) -> String {
    format!("h{host}")
}

const HEAD_MAC: Mac = Mac::of_management(255);

fn management_mac(host: usize) -> Mac {
    Mac::of_management(host as u8)
}

fn management_macs(spec: &BedSpec) -> Vec<(String, Mac)> {
    let hosts = (0..spec.hosts).map(|host| (host_name(host), management_mac(host)));
    hosts.chain([("head".to_owned(), HEAD_MAC)]).collect()
}

fn line(batch: &mut String, text: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(batch, "{text}");
}
