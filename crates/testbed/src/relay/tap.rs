use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;

use rustix::ioctl;

use crate::error::{Result, Tried};

/// `struct ifreq` of <linux/if.h> as TUNSETIFF reads it: a name, flags, and the rest of a union.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; libc::IFNAMSIZ],
    flags: libc::c_short,
    rest: [u8; 22],
}

/// `_IOW('T', 202, int)` of <linux/if_tun.h>. The kernel reads a whole ifreq all the same.
const TUNSETIFF: ioctl::Opcode = libc::TUNSETIFF as ioctl::Opcode;

/// Makes a TAP device in the caller's network namespace. It lives as long as the file, so a
/// killed relay leaves none behind. Reads and writes are whole Ethernet frames, and do not block.
pub(crate) fn create(name: &str) -> Result<File> {
    let tap = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/net/tun")
        .tried(|| "open /dev/net/tun".to_owned())?;
    let mut request = InterfaceRequest {
        name: [0; libc::IFNAMSIZ],
        flags: (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short,
        rest: [0; 22],
    };
    let length = name.len().min(libc::IFNAMSIZ - 1);
    request.name[..length].copy_from_slice(&name.as_bytes()[..length]);
    // SAFETY: TUNSETIFF reads and writes one struct ifreq, and InterfaceRequest has its layout
    // and its 40 bytes.
    let set = unsafe {
        let update = ioctl::Updater::<TUNSETIFF, InterfaceRequest>::new(&mut request);
        ioctl::ioctl(tap.as_fd(), update)
    };
    set.tried(|| format!("make the TAP device {name}"))?;
    Ok(tap)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_has_the_size_of_an_ifreq() {
        assert_eq!(size_of::<InterfaceRequest>(), size_of::<libc::ifreq>());
    }
}
