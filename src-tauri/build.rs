//! Tauri's build step: checks `tauri.conf.json` and the capabilities, and makes a permission of each command.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // With a pattern of ours tauri-build does not print this itself.
    println!("cargo:rerun-if-changed=src-tauri/capabilities");
    tauri_build::try_build(
        tauri_build::Attributes::new()
            .capabilities_path_pattern("./src-tauri/capabilities/**/*")
            .app_manifest(tauri_build::AppManifest::new().commands(&["rpc", "subscribe", "painted"])),
    )?;
    Ok(())
}
