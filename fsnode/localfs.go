package fsnode

import "golang.org/x/sys/unix"

// isLocal reports whether every change of the file system at path is made
// through the kernel of this machine, so that inotify tells of it. What is not
// known to be local counts as remote.
func isLocal(path string) bool {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return false
	}
	switch uint32(st.Type) { // the type's width differs between platforms
	case unix.EXT4_SUPER_MAGIC, // and ext2, ext3
		unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, bcachefsMagic, zfsMagic,
		unix.TMPFS_MAGIC, unix.RAMFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC,
		jfsMagic, unix.REISERFS_SUPER_MAGIC, unix.NILFS_SUPER_MAGIC,
		unix.MSDOS_SUPER_MAGIC, unix.EXFAT_SUPER_MAGIC, ntfs3Magic, hfsPlusMagic,
		unix.ISOFS_SUPER_MAGIC, unix.UDF_SUPER_MAGIC, unix.SQUASHFS_MAGIC, unix.EROFS_SUPER_MAGIC_V1:
		return true
	}
	return false
}

// Numbers that the unix package lacks.
const (
	bcachefsMagic = 0xca451a4e
	zfsMagic      = 0x2fc12fc1
	jfsMagic      = 0x3153464a
	ntfs3Magic    = 0x7366746e
	hfsPlusMagic  = 0x482b
)
