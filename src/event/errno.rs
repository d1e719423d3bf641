//! Names of the errors with which system calls fail on Linux.
//!
//! The numbers are those of `include/uapi/asm-generic/errno.h`, which all architectures but a few old ones share, and
//! those that only the kernel itself and its tracers see (`include/linux/errno.h`).

/// From 1 on; empty: not used.
#[rustfmt::skip]
const NAMES: [&str; 133] = [
    "EPERM", "ENOENT", "ESRCH", "EINTR", "EIO", "ENXIO", "E2BIG", "ENOEXEC", "EBADF", "ECHILD", "EAGAIN", "ENOMEM",
    "EACCES", "EFAULT", "ENOTBLK", "EBUSY", "EEXIST", "EXDEV", "ENODEV", "ENOTDIR", "EISDIR", "EINVAL", "ENFILE",
    "EMFILE", "ENOTTY", "ETXTBSY", "EFBIG", "ENOSPC", "ESPIPE", "EROFS", "EMLINK", "EPIPE", "EDOM", "ERANGE",
    "EDEADLK", "ENAMETOOLONG", "ENOLCK", "ENOSYS", "ENOTEMPTY", "ELOOP", "", "ENOMSG", "EIDRM", "ECHRNG", "EL2NSYNC",
    "EL3HLT", "EL3RST", "ELNRNG", "EUNATCH", "ENOCSI", "EL2HLT", "EBADE", "EBADR", "EXFULL", "ENOANO", "EBADRQC",
    "EBADSLT", "", "EBFONT", "ENOSTR", "ENODATA", "ETIME", "ENOSR", "ENONET", "ENOPKG", "EREMOTE", "ENOLINK", "EADV",
    "ESRMNT", "ECOMM", "EPROTO", "EMULTIHOP", "EDOTDOT", "EBADMSG", "EOVERFLOW", "ENOTUNIQ", "EBADFD", "EREMCHG",
    "ELIBACC", "ELIBBAD", "ELIBSCN", "ELIBMAX", "ELIBEXEC", "EILSEQ", "ERESTART", "ESTRPIPE", "EUSERS", "ENOTSOCK",
    "EDESTADDRREQ", "EMSGSIZE", "EPROTOTYPE", "ENOPROTOOPT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT", "EOPNOTSUPP",
    "EPFNOSUPPORT", "EAFNOSUPPORT", "EADDRINUSE", "EADDRNOTAVAIL", "ENETDOWN", "ENETUNREACH", "ENETRESET",
    "ECONNABORTED", "ECONNRESET", "ENOBUFS", "EISCONN", "ENOTCONN", "ESHUTDOWN", "ETOOMANYREFS", "ETIMEDOUT",
    "ECONNREFUSED", "EHOSTDOWN", "EHOSTUNREACH", "EALREADY", "EINPROGRESS", "ESTALE", "EUCLEAN", "ENOTNAM", "ENAVAIL",
    "EISNAM", "EREMOTEIO", "EDQUOT", "ENOMEDIUM", "EMEDIUMTYPE", "ECANCELED", "ENOKEY", "EKEYEXPIRED", "EKEYREVOKED",
    "EKEYREJECTED", "EOWNERDEAD", "ENOTRECOVERABLE", "ERFKILL", "EHWPOISON",
];

/// A call that a signal interrupted and that begins again; from 512 on.
const RESTARTS: [&str; 5] = ["ERESTARTSYS", "ERESTARTNOINTR", "ERESTARTNOHAND", "ENOIOCTLCMD", "ERESTART_RESTARTBLOCK"];
const RESTARTS_FROM: usize = 512;

/// Values that a system call returns where it fails are no smaller: what is below is an address.
const LEAST: i64 = -4095;

/// True for the value that a failed system call returned.
pub fn failed(ret: i64) -> bool {
    (LEAST..0).contains(&ret)
}

/// True for the value that a call returned which failed because a signal interrupted it.
pub fn was_interrupted(ret: i64) -> bool {
    name(ret).is_some_and(|name| name == "EINTR" || RESTARTS.contains(&name.as_str()))
}

/// The error for which a system call returned `ret`; `None` where it did not fail. An error without a name is its
/// number.
pub fn name(ret: i64) -> Option<String> {
    if !failed(ret) {
        return None;
    }
    let number = usize::try_from(-ret).ok()?;
    let known = match number.checked_sub(RESTARTS_FROM) {
        Some(at) => RESTARTS.get(at),
        None => NAMES.get(number - 1),
    };
    Some(known.filter(|name| !name.is_empty()).map_or_else(|| format!("error {number}"), |name| (*name).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn was_interrupted_depends_on_the_error() {
        assert!(was_interrupted(-4) && was_interrupted(-512) && was_interrupted(-516));
        assert!(!was_interrupted(-11) && !was_interrupted(0) && !was_interrupted(4));
    }

    #[test]
    fn name_is_that_of_an_error() {
        let names = [(-1, "EPERM"), (-2, "ENOENT"), (-11, "EAGAIN"), (-110, "ETIMEDOUT"), (-133, "EHWPOISON")];
        for (ret, wanted) in names.into_iter().chain([(-512, "ERESTARTSYS"), (-41, "error 41"), (-4000, "error 4000")])
        {
            assert_eq!(name(ret).as_deref(), Some(wanted));
        }
        assert_eq!([0, 7, -4096, i64::MIN].map(name), [None, None, None, None]);
    }
}
