//! The levels of precedence, lowest first, as Ansible's variable manager combines them.

/// Where a variable was set; of two levels the greater wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// `defaults/` of the task's role, of the roles that brought it, and of the play's other roles.
    RoleDefaults,
    /// Group variables in the inventory itself.
    InventoryGroup,
    /// `group_vars/all` beside the inventory.
    InventoryGroupVarsAll,
    /// `group_vars/all` beside the playbook.
    PlaybookGroupVarsAll,
    /// `group_vars/NAME` beside the inventory.
    InventoryGroupVars,
    /// `group_vars/NAME` beside the playbook.
    PlaybookGroupVars,
    /// Host variables in the inventory itself.
    InventoryHost,
    /// `host_vars/NAME` beside the inventory.
    InventoryHostVars,
    /// `host_vars/NAME` beside the playbook.
    PlaybookHostVars,
    /// Facts of the host, and what set_fact cached.
    Facts,
    /// `vars` of the play.
    Play,
    /// `vars_prompt` of the play.
    PlayPrompt,
    /// `vars_files` of the play.
    PlayFiles,
    /// `vars/` of roles.
    RoleVars,
    /// `vars` of blocks, the innermost first.
    Block,
    /// `vars` of the task.
    Task,
    /// include_vars.
    IncludeVars,
    /// set_fact and registered results.
    SetFacts,
    /// Parameters of a role where it is used.
    RoleParams,
    /// Parameters of the old `include`.
    IncludeParams,
    /// `-e` on the command line.
    Extra,
    /// The loop's own variables (`item`): within the loop they win over all others.
    Loop,
}

impl Level {
    /// All levels, lowest first.
    pub const ALL: [Level; 22] = [
        Level::RoleDefaults,
        Level::InventoryGroup,
        Level::InventoryGroupVarsAll,
        Level::PlaybookGroupVarsAll,
        Level::InventoryGroupVars,
        Level::PlaybookGroupVars,
        Level::InventoryHost,
        Level::InventoryHostVars,
        Level::PlaybookHostVars,
        Level::Facts,
        Level::Play,
        Level::PlayPrompt,
        Level::PlayFiles,
        Level::RoleVars,
        Level::Block,
        Level::Task,
        Level::IncludeVars,
        Level::SetFacts,
        Level::RoleParams,
        Level::IncludeParams,
        Level::Extra,
        Level::Loop,
    ];
}

impl From<crate::inventory::Level> for Level {
    fn from(level: crate::inventory::Level) -> Level {
        use crate::inventory::Level as Inventory;
        match level {
            Inventory::InventoryGroup => Level::InventoryGroup,
            Inventory::InventoryGroupVarsAll => Level::InventoryGroupVarsAll,
            Inventory::PlaybookGroupVarsAll => Level::PlaybookGroupVarsAll,
            Inventory::InventoryGroupVars => Level::InventoryGroupVars,
            Inventory::PlaybookGroupVars => Level::PlaybookGroupVars,
            Inventory::InventoryHost => Level::InventoryHost,
            Inventory::InventoryHostVars => Level::InventoryHostVars,
            Inventory::PlaybookHostVars => Level::PlaybookHostVars,
        }
    }
}
