//! The program `whyslow`.

#[global_allocator]
static ALLOCATOR: whyslow::Watched = whyslow::Watched;

fn main() -> std::process::ExitCode {
    whyslow::main()
}
