<?php
/**
 * Path rules of the agent's workspace tools.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest;

/**
 * Resolves paths below the mounts and refuses every other path.
 */
final class Places {
	private readonly string $prefix;

	/** @var list<string> Guest paths of the mounts, to which access is limited. */
	private array $roots = array();

	/** @var list<string> The same mounts with symlinks resolved, as paths on the file system. */
	private array $real = array();

	/**
	 * @param array<mixed> $roots Guest paths of the mounts.
	 * @param string       $cwd   Directory that relative paths start from.
	 */
	public function __construct( array $roots, private readonly string $cwd ) {
		// Environment variable that is set only when the guest has no root file system of its own.
		$this->prefix = (string) getenv( 'CODEBOX_ROOT' );
		foreach ( $roots as $root ) {
			$real = realpath( $this->prefix . $root );
			if ( false !== $real ) {
				$this->roots[] = (string) $root;
				$this->real[]  = $real;
			}
		}
	}

	/**
	 * Resolves a path that exists, following symlinks.
	 *
	 * @param mixed $path Path as the caller gave it.
	 * @return string Absolute path on the file system.
	 */
	public function existing( mixed $path ): string {
		$place = $this->prefix . $this->written( $path );
		$real  = realpath( $place );
		if ( false === $real ) {
			if ( is_link( $place ) ) {
				throw new Refusal( 'missing', $this->show( $path ) . ' is a link to something that does not exist' );
			}
			throw new Refusal( 'missing', $this->show( $path ) . ' does not exist; look with workspace.list' );
		}
		$this->assert_inside( $real, $path );
		return $real;
	}

	/**
	 * Resolves a path for writing: the existing file with symlinks followed, or a new name below directories
	 * that may not exist yet.
	 *
	 * @param mixed $path Path as the caller gave it.
	 * @return string Absolute path on the file system.
	 */
	public function writable( mixed $path ): string {
		$place = $this->prefix . $this->written( $path );
		if ( file_exists( $place ) ) {
			return $this->existing( $path );
		}
		if ( is_link( $place ) ) {
			throw new Refusal( 'outside', $this->show( $path ) . ' is a link to something that does not exist; delete it first' );
		}
		// The nearest existing directory decides, because below it no symlink can exist.
		$missing = array( basename( $place ) );
		$parent  = dirname( $place );
		while ( ! file_exists( $parent ) ) {
			if ( is_link( $parent ) ) {
				throw new Refusal( 'outside', $this->show( $path ) . ' leads through a link to something that does not exist' );
			}
			array_unshift( $missing, basename( $parent ) );
			$parent = dirname( $parent );
		}
		$real = realpath( $parent );
		if ( false === $real || ! is_dir( $real ) ) {
			throw new Refusal( 'kind', $this->show( $path ) . ' leads through something that is not a directory' );
		}
		$this->assert_inside( $real, $path );
		return $real . '/' . implode( '/', $missing );
	}

	/**
	 * Resolves the path of an entry itself: symlinks in its directory are followed, the entry is not.
	 *
	 * @param mixed $path Path as the caller gave it.
	 * @return string Absolute path on the file system.
	 */
	public function entry( mixed $path ): string {
		$written = $this->written( $path );
		if ( in_array( $written, $this->roots, true ) ) {
			throw new Refusal( 'outside', $this->show( $path ) . ' is the mount itself' );
		}
		$parent = realpath( $this->prefix . dirname( $written ) );
		$place  = $parent . '/' . basename( $written );
		if ( false === $parent || ( ! file_exists( $place ) && ! is_link( $place ) ) ) {
			throw new Refusal( 'missing', $this->show( $path ) . ' does not exist; look with workspace.list' );
		}
		$this->assert_inside( $parent, $path );
		if ( in_array( $place, $this->real, true ) ) {
			throw new Refusal( 'outside', $this->show( $path ) . ' is the mount itself' );
		}
		return $place;
	}

	/**
	 * Converts a path on the file system to the guest path that replies contain.
	 *
	 * @param string $real Path on the file system.
	 * @return string Guest path.
	 */
	public function name( string $real ): string {
		foreach ( $this->real as $index => $root ) {
			if ( $real === $root || str_starts_with( $real, $root . '/' ) ) {
				return $this->roots[ $index ] . substr( $real, strlen( $root ) );
			}
		}
		return $real;
	}

	/**
	 * Checks whether the tools refuse a name. The same rule excludes names when changes of files are
	 * collected.
	 *
	 * @param string $name One path component.
	 * @return bool Whether git treats the name as `.git` on any file system.
	 */
	public static function is_git( string $name ): bool {
		$seen = (string) preg_replace( '/[\x{200c}-\x{200f}\x{202a}-\x{202e}\x{206a}-\x{206f}\x{feff}]/u', '', $name ) ?: $name;
		$seen = rtrim( explode( ':', $seen )[0], '. ' );
		return 0 === strcasecmp( $seen, '.git' ) || 0 === strcasecmp( $seen, 'git~1' );
	}

	/**
	 * Quotes and shortens a path for a message.
	 *
	 * @param mixed $path Path as the caller gave it.
	 * @return string Quoted path.
	 */
	public function show( mixed $path ): string {
		$text = is_string( $path ) ? $path : gettype( $path );
		return (string) json_encode( mb_strcut( $text, 0, 300 ), JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_INVALID_UTF8_SUBSTITUTE );
	}

	/**
	 * Returns the absolute path as written, without `.` and `..`, below a mount.
	 *
	 * @param mixed $path Path as the caller gave it.
	 * @return string Guest path.
	 */
	private function written( mixed $path ): string {
		if ( ! is_string( $path ) || '' === $path || strlen( $path ) > 4000 || str_contains( $path, "\0" ) ) {
			throw new Refusal( 'request', 'a path must be a text of 1 to 4000 bytes without NUL' );
		}
		$absolute = '/' === $path[0] ? $path : $this->cwd . '/' . $path;
		$parts    = array();
		foreach ( explode( '/', $absolute ) as $part ) {
			if ( '' === $part || '.' === $part ) {
				continue;
			}
			if ( '..' === $part ) {
				array_pop( $parts );
				continue;
			}
			$parts[] = $part;
		}
		$written = '/' . implode( '/', $parts );
		$root    = $this->root_of( $written, $this->roots );
		if ( null === $root ) {
			throw new Refusal( 'outside', $this->show( $path ) . ' is outside the mounts; the mounts are ' . implode( ', ', $this->roots ) );
		}
		$this->assert_no_git( substr( $written, strlen( $root ) ), $path );
		return $written;
	}

	private function assert_inside( string $real, mixed $path ): void {
		$root = $this->root_of( $real, $this->real );
		if ( null === $root ) {
			throw new Refusal( 'outside', $this->show( $path ) . ' leads out of the mounts through a link' );
		}
		$this->assert_no_git( substr( $real, strlen( $root ) ), $path );
	}

	private function assert_no_git( string $below, mixed $path ): void {
		foreach ( explode( '/', $below ) as $name ) {
			if ( self::is_git( $name ) ) {
				throw new Refusal( 'git', $this->show( $path ) . ' is below .git, which the workspace tools do not access' );
			}
		}
	}

	/**
	 * @param string       $path  Absolute path.
	 * @param list<string> $roots Allowed roots.
	 * @return string|null Root that contains the path.
	 */
	private function root_of( string $path, array $roots ): ?string {
		foreach ( $roots as $root ) {
			if ( $path === $root || str_starts_with( $path, $root . '/' ) ) {
				return $root;
			}
		}
		return null;
	}
}
