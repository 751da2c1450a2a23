//! How a bed, its hosts, links, paths and rails are called on the command line and in the state.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// Name of a bed; several beds live side by side under different ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Prefix(String);

impl Prefix {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Prefix {
    type Err = Error;

    /// Takes 1 to 20 lower-case letters, digits and `-`: it becomes part of file and cgroup names.
    fn from_str(text: &str) -> Result<Self, Error> {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if (1..=20).contains(&text.len()) && text.chars().all(fits) {
            return Ok(Prefix(text.to_owned()));
        }
        Err(Error::Usage(format!(
            "`{text}` is not a bed's name: 1 to 20 lower-case letters, digits and `-`"
        )))
    }
}

impl TryFrom<String> for Prefix {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<Prefix> for String {
    fn from(prefix: Prefix) -> String {
        prefix.0
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A NIC with its cable and its switch port, written `h2/nic1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Link {
    /// Number of the host.
    pub host: usize,
    /// Number of the NIC, which is also that of its rail.
    pub nic: usize,
}

impl Link {
    /// The switch's end of the cable, an interface of the switch namespace.
    pub(crate) fn port(self) -> String {
        format!("h{}-nic{}", self.host, self.nic)
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "h{}/nic{}", self.host, self.nic)
    }
}

impl FromStr for Link {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        text.split_once('/')
            .and_then(|(host, nic)| {
                Some(Link { host: number(host, "h")?, nic: number(nic, "nic")? })
            })
            .ok_or_else(|| Error::Usage(format!("`{text}` is not a link: write one as h2/nic1")))
    }
}

impl TryFrom<String> for Link {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<Link> for String {
    fn from(link: Link) -> String {
        link.to_string()
    }
}

/// Where a fault sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Target {
    /// All links of a host, or its processes: `h2`.
    Host(usize),
    /// One NIC with its cable and port: `h2/nic1`.
    Link(Link),
    /// What the first link sends to the second, on one rail: `h2/nic1:h3/nic1`.
    Path {
        /// The sender's link.
        from: Link,
        /// The receiver's link.
        to: Link,
    },
    /// All links of a rail: `rail1`.
    Rail(usize),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Host(host) => write!(f, "h{host}"),
            Target::Link(link) => write!(f, "{link}"),
            Target::Path { from, to } => write!(f, "{from}:{to}"),
            Target::Rail(rail) => write!(f, "rail{rail}"),
        }
    }
}

impl FromStr for Target {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if let Some((from, to)) = text.split_once(':') {
            let (from, to): (Link, Link) = (from.parse()?, to.parse()?);
            if from.nic != to.nic || from.host == to.host {
                return Err(Error::Usage(format!(
                    "`{text}` is not a path: it joins two hosts on one rail, such as \
                     h2/nic1:h3/nic1"
                )));
            }
            return Ok(Target::Path { from, to });
        }
        if text.contains('/') {
            return text.parse().map(Target::Link);
        }
        let host = number(text, "h").map(Target::Host);
        host.or_else(|| number(text, "rail").map(Target::Rail)).ok_or_else(|| {
            Error::Usage(format!(
                "`{text}` is no place for a fault: write a host (h2), a link (h2/nic1), a path \
                 (h2/nic1:h3/nic1) or a rail (rail1)"
            ))
        })
    }
}

impl TryFrom<String> for Target {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<Target> for String {
    fn from(target: Target) -> String {
        target.to_string()
    }
}

/// The number in `h12` or `nic3`; none where the text is anything else.
pub(crate) fn number(text: &str, word: &str) -> Option<usize> {
    let digits = text.strip_prefix(word)?;
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_read_back_as_written() {
        for text in ["h2", "h2/nic1", "h2/nic1:h3/nic1", "rail1"] {
            assert_eq!(text.parse::<Target>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_target_is_refused() {
        for text in ["", "h", "2", "h2/", "h2/eth0", "h2/nic1:h3/nic0", "h2/nic1:h2/nic1", "h+2"] {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_prefix_is_safe_in_a_path() {
        assert!("ci-7".parse::<Prefix>().is_ok());
        for text in ["", "..", "a/b", "A", "a b", "abcdefghijklmnopqrstu"] {
            assert!(text.parse::<Prefix>().is_err(), "{text}");
        }
    }
}
