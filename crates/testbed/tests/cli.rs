//! The commands as they are typed, and what they say.

mod common;

use std::fs;
use std::path::Path;

use common::*;
use hpcbench_testbed::{Prefix, down};

/// A bed made by the command line, removed at the end of the test, also when it fails.
struct Typed(Prefix);

impl Typed {
    fn up(arguments: &[&str]) -> Typed {
        let bed = Typed(prefix());
        let up = [&["up", "--hosts", "3", "--nics", "2"], arguments].concat();
        let text = said(&tool(&bed.0, &up));
        assert!(text.contains("3 hosts with 2 NICs at"), "{text}");
        bed
    }

    fn ok(&self, arguments: &[&str]) -> String {
        said(&tool(&self.0, arguments))
    }

    /// What it says on standard error when it has to fail.
    fn fails(&self, arguments: &[&str]) -> String {
        let output = tool(&self.0, arguments);
        assert!(!output.status.success(), "{arguments:?} succeeded");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }
}

impl Drop for Typed {
    fn drop(&mut self) {
        down(&self.0).expect("the bed is removed");
    }
}

#[test]
fn faults_are_put_in_listed_and_cleared() {
    let Some(_turn) = turn() else { return };
    let bed = Typed::up(&[]);
    assert_eq!(bed.ok(&["fault", "loss", "h2/nic1", "2%", "--direction", "send"]), "1\n");
    let timed = ["--on", "200ms", "--off", "1s", "--after", "5s", "--times", "3", "--seed", "9"];
    let flap = [&["fault", "flap", "rail0"], &timed[..]].concat();
    assert_eq!(bed.ok(&flap), "2\n");
    assert_eq!(bed.ok(&["fault", "rate", "h0/nic0:h1/nic0", "100mbit"]), "3\n");
    assert_eq!(bed.ok(&["fault", "slow-host", "h1", "0.5"]), "4\n");
    let listed = bed.ok(&["faults"]);
    let rows: Vec<Vec<&str>> = listed
        .lines()
        .map(|line| line.split("  ").filter(|cell| !cell.is_empty()).collect())
        .collect();
    let row = |at: usize| rows[at].iter().map(|cell| cell.trim()).collect::<Vec<_>>();
    assert_eq!(row(1), ["1", "loss 2%", "h2/nic1", "send", "1", "always", "0 of 0"]);
    let when = "200ms on, 1s off, after 5s, 3 times";
    assert_eq!(row(2), ["2", "down", "rail0", "both", "9", when, "-"]);
    assert_eq!(row(3)[1..3], ["rate 100mbit", "h0/nic0:h1/nic0"]);
    assert_eq!(row(4)[1..3], ["slow-host 0.5 cores", "h1"]);
    let json: serde_json::Value = serde_json::from_str(&bed.ok(&["faults", "--json"])).unwrap();
    assert_eq!(json[0]["target"], "h2/nic1");
    assert_eq!(bed.ok(&["clear", "1", "3"]), "2 cleared\n");
    assert_eq!(bed.ok(&["clear"]), "2 cleared\n");
    assert_eq!(bed.ok(&["faults"]).lines().count(), 1);
}

#[test]
fn a_relay_is_there_for_a_fault_and_stays_where_it_was_asked_for() {
    let Some(_turn) = turn() else { return };
    let links = |bed: &Typed| {
        let text = bed.ok(&["relays", "--json"]);
        let json: serde_json::Map<_, _> = serde_json::from_str(&text).unwrap();
        json.keys().cloned().collect::<Vec<_>>()
    };
    let bare = Typed::up(&[]);
    assert!(links(&bare).is_empty());
    bare.ok(&["fault", "delay", "h1", "1ms"]);
    assert_eq!(links(&bare), ["h1/nic0", "h1/nic1"]);
    bare.ok(&["clear"]);
    assert!(links(&bare).is_empty());
    let full = Typed::up(&["--relays", "all"]);
    full.ok(&["fault", "delay", "h1", "1ms"]);
    full.ok(&["clear"]);
    assert_eq!(links(&full).len(), 6);
}

#[test]
fn a_relay_reports_its_own_delay() {
    let Some(_turn) = turn() else { return };
    let bed = Typed::up(&["--relays", "all", "--latency", "1ms"]);
    bed.ok(&["exec", "h0", "ping", "-q", "-c", "20", "-i", "0.01", "h1-nic0"]);
    let json: serde_json::Value = serde_json::from_str(&bed.ok(&["relays", "--json"])).unwrap();
    let (send, receive) = (&json["h0/nic0"]["send"], &json["h0/nic0"]["receive"]);
    assert_eq!((&send["frames"], &send["held"]), (&20.into(), &20.into()));
    assert!(send["lateness"]["p50_ns"].as_u64().unwrap() > 0);
    assert!(receive["passing"]["p99_ns"].as_u64().unwrap() > 0);
    assert!(json["h2/nic1"]["send"]["passing"].is_null());
    assert!(bed.ok(&["relays"]).contains("passing p50/p99/max"));
}

#[test]
fn exec_becomes_the_command_it_runs() {
    let Some(_turn) = turn() else { return };
    let bed = Typed::up(&[]);
    assert_eq!(bed.ok(&["exec", "h2", "hostname"]), "h2\n");
    assert_eq!(tool(&bed.0, &["exec", "h1", "sh", "-c", "exit 42"]).status.code(), Some(42));
    let here = std::env::current_dir().unwrap();
    assert_eq!(bed.ok(&["exec", "h0", "pwd"]).trim(), here.display().to_string());
    assert!(bed.ok(&["exec", "h0", "cat", "/etc/hosts"]).contains("10.2.0.3 h2-nic1"));
    let words = bed.fails(&["exec", "h0", "/does/not/exist"]);
    assert!(words.contains("cannot run `/does/not/exist`"), "{words}");
}

#[test]
fn what_cannot_be_done_is_said_with_what_to_type() {
    let Some(_turn) = turn() else { return };
    let bed = Typed::up(&[]);
    for (arguments, expected) in [
        (&["exec", "h7", "true"][..], "it has h0 to h2, head and switch"),
        (&["fault", "loss", "h9/nic0", "1%"], "its hosts are h0 to h2"),
        (&["fault", "loss", "port7", "1%"], "write a host (h2)"),
        (&["fault", "loss", "h1", "200%"], "write one as 2%"),
        (&["fault", "flap", "h1"], "--on 200ms --off 2s"),
        (&["fault", "pause", "rail0"], "act on a host"),
        (&["clear", "5"], "there is no fault 5"),
        (&["swap", "h1/nic0", "h1/nic0"], "name two links"),
        (&["up"], "exists already"),
    ] {
        let words = bed.fails(arguments);
        assert!(words.contains(expected), "{arguments:?}: {words}");
    }
    let nowhere = tool(&prefix(), &["hosts"]);
    let words = String::from_utf8_lossy(&nowhere.stderr);
    assert!(words.contains("there is no bed"), "{words}");
}

#[test]
fn an_inventory_root_has_the_fixture_and_counts_live() {
    let Some(_turn) = turn() else { return };
    let fixture = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fixture-{}", prefix()));
    let vendor = "sys/class/infiniband/efa_0/device/vendor";
    for (host, text) in [("h0", "0x1d0f\n"), ("h1", "0x15b3\n"), ("h2", "0x1d0f\n")] {
        fs::create_dir_all(fixture.join(host).join(vendor).parent().unwrap()).unwrap();
        fs::write(fixture.join(host).join(vendor), text).unwrap();
    }
    let bed = Typed::up(&["--inventory", fixture.to_str().unwrap()]);
    fs::remove_dir_all(&fixture).unwrap();
    let hosts: serde_json::Value = serde_json::from_str(&bed.ok(&["hosts", "--json"])).unwrap();
    let root = Path::new(hosts[1]["inventory"].as_str().unwrap());
    assert_eq!(fs::read_to_string(root.join(vendor)).unwrap(), "0x15b3\n");
    let received = root.join("sys/class/net/nic1/statistics/rx_packets");
    assert_eq!(fs::read_to_string(&received).unwrap(), "0\n");
    bed.ok(&["exec", "h0", "ping", "-q", "-c", "3", "-i", "0.01", "h1-nic1"]);
    assert_eq!(fs::read_to_string(&received).unwrap(), "3\n");
}
