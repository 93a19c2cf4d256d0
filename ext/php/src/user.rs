//! The state directory of the user that this process runs as.

use rustix::process::geteuid;
use std::cell::RefCell;
use std::ffi::CStr;

/// Directory below which root makes a state directory for each user (`wp-codebox users add`).
pub(crate) const STATES: &str = "/var/lib/wp-codebox";
/// Longest entry of the user database that is read, in bytes.
const LONGEST: usize = 1 << 20;

thread_local! {
    /// Uid and name of the user that this thread asked for last. A worker of php-fpm starts as root
    /// and changes its user once; the name may be in a directory of the network, such as LDAP.
    static KNOWN: RefCell<Option<(u32, String)>> = const { RefCell::new(None) };
}

/// Returns the path of the state directory of this process's user, whether it exists or not. Root
/// has none: it runs the PHP of many sites. A user without a name has the uid in its place.
pub(crate) fn default_state() -> String {
    format!("{STATES}/{}", name(geteuid().as_raw()))
}

/// Returns the name of a user, or the uid if there is none.
pub(crate) fn name(uid: u32) -> String {
    KNOWN.with_borrow_mut(|known| match known {
        Some((of, name)) if *of == uid => name.clone(),
        _ => {
            let name = look_up(uid).unwrap_or_else(|| uid.to_string());
            *known = Some((uid, name.clone()));
            name
        }
    })
}

fn look_up(uid: u32) -> Option<String> {
    let mut buffer = vec![0; 1024];
    loop {
        // SAFETY: all members of `passwd` are numbers and pointers, for which zero is valid.
        let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
        let mut found = std::ptr::null_mut();
        // SAFETY: the buffer has the given length, and all pointers are valid for this call.
        let error = unsafe {
            libc::getpwuid_r(
                uid,
                &raw mut entry,
                buffer.as_mut_ptr(),
                buffer.len(),
                &raw mut found,
            )
        };
        if error == libc::ERANGE && buffer.len() < LONGEST {
            buffer.resize(buffer.len() * 4, 0);
            continue;
        }
        if error != 0 || found.is_null() {
            return None;
        }
        // SAFETY: the call succeeded, so the name is NUL-terminated text in `buffer`.
        let name = unsafe { CStr::from_ptr(entry.pw_name) }.to_str().ok()?;
        let is_file_name = !name.is_empty() && !name.starts_with('.') && !name.contains('/');
        return is_file_name.then(|| name.to_owned());
    }
}
