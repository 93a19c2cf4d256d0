<?php
/**
 * Write operations of the workspace tools; each request is applied completely or not at all.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest;

/**
 * Writes and deletes files below the mounts.
 */
final class Writing {
	/** Size limit of all files of one request, in bytes. */
	private const STORE_BYTES = 8388608;

	public function __construct( private readonly Places $places ) {}

	/**
	 * Replaces, creates and removes files. `sha256` is the expected digest of the current file: '' means that
	 * no file may exist, null skips the check.
	 *
	 * @param array<string,mixed> $request Request {changes: [{path, action, length, sha256, mode}]}.
	 * @param resource            $input   Stream with the bytes of all written files, in order.
	 * @return array<string,mixed>
	 */
	public function store( array $request, $input ): array {
		$plan = array();
		foreach ( (array) ( $request['changes'] ?? array() ) as $change ) {
			$plan[] = $this->plan( (array) $change, $input );
		}
		$temporary = array();
		$made      = array();
		$done      = array();
		try {
			foreach ( $plan as $index => $step ) {
				if ( null !== $step['bytes'] ) {
					$temporary[ $index ] = $this->write_temporary( $step, $made );
				}
			}
			foreach ( $plan as $index => $step ) {
				if ( ! $this->carry_out( $step, $temporary[ $index ] ?? null ) ) {
					throw $this->unable( $step['path'] );
				}
				unset( $temporary[ $index ] );
				$done[] = $step;
			}
		} catch ( Refusal $refusal ) {
			array_map( 'unlink', $temporary );
			foreach ( array_reverse( $done ) as $step ) {
				$this->undo( $step );
			}
			array_map( 'rmdir', array_reverse( $made ) );
			throw $refusal;
		}
		return array(
			'files' => array_map(
				fn ( array $step ): array => array(
					'path'    => $this->places->name( $step['place'] ),
					'existed' => null !== $step['before'],
				),
				$plan
			),
		);
	}

	/**
	 * @param array<string,mixed> $request Request {path, recursive}.
	 * @return array<string,mixed>
	 */
	public function delete( array $request ): array {
		$place     = $this->places->entry( $request['path'] ?? null );
		$recursive = true === ( $request['recursive'] ?? false );
		$removed   = 0;
		if ( is_dir( $place ) && ! is_link( $place ) ) {
			if ( ! $recursive && count( (array) scandir( $place ) ) > 2 ) {
				throw new Refusal( 'kind', $this->places->show( $request['path'] ) . ' is a directory with entries; set recursive to true to delete them all' );
			}
			$this->assert_without_git( $place, $request['path'] );
			$this->remove_tree( $place, $removed );
		} elseif ( unlink( $place ) ) {
			++$removed;
		} else {
			throw $this->unable( $request['path'] );
		}
		return array( 'removed' => $removed );
	}

	/**
	 * Checks one change and reads its bytes from the request, without changing any file.
	 *
	 * @param array<string,mixed> $change One element of `changes`.
	 * @param resource            $input  Stream positioned at the bytes of the change.
	 * @return array{path:mixed,place:string,bytes:?string,before:?string,mode:?int}
	 */
	private function plan( array $change, $input ): array {
		$path   = $change['path'] ?? null;
		$bytes  = null;
		$length = (int) ( $change['length'] ?? 0 );
		if ( 'delete' !== ( $change['action'] ?? '' ) ) {
			if ( $length < 0 || $length > self::STORE_BYTES ) {
				throw new Refusal( 'limit', $this->places->show( $path ) . ' would have more than 8 MiB' );
			}
			$bytes = 0 === $length ? '' : stream_get_contents( $input, $length );
			if ( ! is_string( $bytes ) || strlen( $bytes ) !== $length ) {
				throw new Refusal( 'request', 'the bytes of ' . $this->places->show( $path ) . ' are missing' );
			}
		}
		$place  = $this->places->writable( $path );
		$before = null;
		$mode   = isset( $change['mode'] ) ? ( (int) $change['mode'] ) & 0777 : null;
		if ( file_exists( $place ) ) {
			if ( 'file' !== filetype( $place ) ) {
				throw new Refusal( 'kind', $this->places->show( $path ) . ' is not a regular file but a ' . filetype( $place ) );
			}
			$before = file_get_contents( $place );
			if ( false === $before ) {
				throw new Refusal( 'io', $this->places->show( $path ) . ' cannot be read: permission denied' );
			}
			$mode ??= fileperms( $place ) & 0777;
		} elseif ( null === $bytes ) {
			throw new Refusal( 'missing', $this->places->show( $path ) . ' does not exist' );
		}
		$expected = $change['sha256'] ?? null;
		if ( '' === $expected && null !== $before ) {
			throw new Refusal( 'changed', $this->places->show( $path ) . ' exists already' );
		}
		if ( is_string( $expected ) && '' !== $expected && ( null === $before || hash( 'sha256', $before ) !== $expected ) ) {
			throw new Refusal( 'changed', $this->places->show( $path ) . ' changed while it was edited; read it again' );
		}
		return compact( 'path', 'place', 'bytes', 'before', 'mode' );
	}

	/**
	 * Writes the bytes to a temporary file in the target directory.
	 *
	 * @param array{path:mixed,place:string,bytes:?string,before:?string,mode:?int} $step Change to prepare.
	 * @param list<string>                                                        $made Set to the created
	 *   directories.
	 * @return string Path of the temporary file.
	 */
	private function write_temporary( array $step, array &$made ): string {
		$directory = dirname( $step['place'] );
		$missing   = array();
		for ( $parent = $directory; ! is_dir( $parent ); $parent = dirname( $parent ) ) {
			$missing[] = $parent;
		}
		foreach ( array_reverse( $missing ) as $parent ) {
			if ( ! @mkdir( $parent, 0755 ) ) {
				throw $this->unable( $step['path'] );
			}
			$made[] = $parent;
		}
		$temporary = $directory . '/.codebox-' . bin2hex( random_bytes( 8 ) ) . '.tmp';
		$written   = @file_put_contents( $temporary, (string) $step['bytes'] );
		if ( strlen( (string) $step['bytes'] ) !== $written || ! $this->has_required_mode( $step, $temporary ) ) {
			@unlink( $temporary );
			throw $this->unable( $step['path'] );
		}
		return $temporary;
	}

	/**
	 * Gives the temporary file the requested mode, if it has another one. A guest without namespaces cannot
	 * change modes. Then the change can proceed only if the file that it overwrites in place already has the
	 * requested mode, because that file keeps its mode.
	 *
	 * @param array{path:mixed,place:string,bytes:?string,before:?string,mode:?int} $step      Change to carry
	 *   out.
	 * @param string                                                              $temporary Path of the
	 *   temporary file.
	 * @return bool Whether the change can proceed.
	 */
	private function has_required_mode( array $step, string $temporary ): bool {
		$mode = $step['mode'] ?? 0644;
		return $this->mode( $temporary ) === $mode
			|| @chmod( $temporary, $mode )
			|| ( null !== $step['before'] && $this->mode( $step['place'] ) === $mode );
	}

	/**
	 * Carries out one change: puts the new content in place, or deletes the file.
	 *
	 * @param array{path:mixed,place:string,bytes:?string,before:?string,mode:?int} $step      Change to carry
	 *   out.
	 * @param string|null                                                         $temporary Temporary file
	 *   with its bytes; null for a deletion.
	 * @return bool Whether the change succeeded.
	 */
	private function carry_out( array $step, ?string $temporary ): bool {
		if ( null === $temporary ) {
			return @unlink( $step['place'] );
		}
		if ( $this->mode( $temporary ) === ( $step['mode'] ?? 0644 ) ) {
			return @rename( $temporary, $step['place'] );
		}
		return strlen( (string) $step['bytes'] ) === @file_put_contents( $step['place'], (string) $step['bytes'] ) && @unlink( $temporary );
	}

	private function mode( string $place ): int {
		clearstatcache( true, $place );
		return (int) @fileperms( $place ) & 0777;
	}

	/**
	 * @param array{path:mixed,place:string,bytes:?string,before:?string,mode:?int} $step Change to revert.
	 */
	private function undo( array $step ): void {
		if ( null === $step['before'] ) {
			@unlink( $step['place'] );
			return;
		}
		@file_put_contents( $step['place'], $step['before'] );
		@chmod( $step['place'], $step['mode'] ?? 0644 );
	}

	/**
	 * Fails when a directory that would be deleted contains a git repository.
	 *
	 * @param string $directory Path on the file system.
	 * @param mixed  $path      Path as the caller gave it.
	 */
	private function assert_without_git( string $directory, mixed $path ): void {
		foreach ( (array) scandir( $directory ) as $name ) {
			if ( '.' === $name || '..' === $name ) {
				continue;
			}
			if ( Places::is_git( (string) $name ) ) {
				throw new Refusal( 'git', $this->places->show( $path ) . ' holds a .git, which the workspace tools do not access' );
			}
			$place = $directory . '/' . $name;
			if ( is_dir( $place ) && ! is_link( $place ) ) {
				$this->assert_without_git( $place, $path );
			}
		}
	}

	private function remove_tree( string $directory, int &$removed ): void {
		foreach ( (array) scandir( $directory ) as $name ) {
			if ( '.' === $name || '..' === $name ) {
				continue;
			}
			$place = $directory . '/' . $name;
			if ( is_dir( $place ) && ! is_link( $place ) ) {
				$this->remove_tree( $place, $removed );
			} elseif ( @unlink( $place ) ) {
				++$removed;
			} else {
				throw $this->unable( $this->places->name( $place ) );
			}
		}
		if ( ! @rmdir( $directory ) ) {
			throw $this->unable( $this->places->name( $directory ) );
		}
		++$removed;
	}

	private function unable( mixed $path ): Refusal {
		$why = error_get_last()['message'] ?? 'unknown reason';
		$why = (string) preg_replace( '/^.*: /s', '', $why );
		return new Refusal( 'io', $this->places->show( $path ) . ' cannot be changed: ' . $why . '. Nothing was changed; a mount may be read-only' );
	}
}
