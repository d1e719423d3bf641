//! Names of functions as their authors wrote them, from the names that linkers know.

/// The name a programmer knows a symbol by: Rust without its hash, C++ without parameters.
pub fn demangle(name: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
    if name.starts_with("_Z")
        && let Ok(symbol) = cpp_demangle::Symbol::new(name)
        && let Ok(text) = symbol.demangle(&options)
    {
        return text;
    }
    // Versions (`memcpy@@GLIBC_2.14`) and parts of split functions (`f.cold`, `f.part.0`) are the same function.
    let cut = |at: &str| name.find(at).filter(|i| *i > 0).unwrap_or(name.len());
    let end = [".cold", ".part.", ".constprop.", ".isra.", ".llvm.", "@"].map(cut).into_iter().min();
    name.get(..end.unwrap_or(name.len())).unwrap_or(name).to_owned()
}
