<?php
/**
 * What the workspace tools change: all of a change or nothing of it.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest;

/**
 * Writes and deletes below the mounts.
 */
final class Writing {
	/** Bytes of all files of one change. */
	private const STORE_BYTES = 8388608;

	public function __construct( private readonly Places $places ) {}

	/**
	 * Replaces, makes and removes files. `sha256` is what a file must hold before, an empty text
	 * says that there must be none, null that it does not matter.
	 *
	 * @param array<string,mixed> $request {changes: [{path, action, length, sha256, mode}]}.
	 * @param resource            $input   The bytes of all files that are written, in order.
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
					$temporary[ $index ] = $this->lay_down( $step, $made );
				}
			}
			foreach ( $plan as $index => $step ) {
				if ( ! $this->put( $step, $temporary[ $index ] ?? null ) ) {
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
	 * @param array<string,mixed> $request {path, recursive}.
	 * @return array<string,mixed>
	 */
	public function delete( array $request ): array {
		$place     = $this->places->entry( $request['path'] ?? null );
		$recursive = true === ( $request['recursive'] ?? false );
		$removed   = 0;
		if ( is_dir( $place ) && ! is_link( $place ) ) {
			if ( ! $recursive && count( (array) scandir( $place ) ) > 2 ) {
				throw new Refusal( 'kind', $this->places->show( $request['path'] ) . ' is a directory with entries; say recursive true to delete them all' );
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
	 * Checks one change and reads its bytes; nothing is changed yet.
	 *
	 * @param array<string,mixed> $change One of `changes`.
	 * @param resource            $input  Its bytes come next.
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
				throw new Refusal( 'kind', $this->places->show( $path ) . ' is no regular file but a ' . filetype( $place ) );
			}
			$before = file_get_contents( $place );
			if ( false === $before ) {
				throw new Refusal( 'io', $this->places->show( $path ) . ' may not be read' );
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
	 * Writes the bytes beside their place.
	 *
	 * @param array{path:mixed,place:string,bytes:?string,before:?string,mode:?int} $step The change.
	 * @param list<string>                                                        $made Directories that were made.
	 * @return string The temporary file.
	 */
	private function lay_down( array $step, array &$made ): string {
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
		if ( strlen( (string) $step['bytes'] ) !== $written || ! $this->can_be_put( $step, $temporary ) ) {
			@unlink( $temporary );
			throw $this->unable( $step['path'] );
		}
		return $temporary;
	}

	/**
	 * Whether the temporary file got its mode, or does not need it: a guest without namespaces may
	 * change no mode, and a file that is there keeps its own when it is written in place.
	 *
	 * @param array{path:mixed,place:string,bytes:?string,before:?string,mode:?int} $step      The change.
	 * @param string                                                              $temporary The temporary file.
	 * @return bool Whether it can go on.
	 */
	private function can_be_put( array $step, string $temporary ): bool {
		$mode = $step['mode'] ?? 0644;
		return $this->mode( $temporary ) === $mode
			|| @chmod( $temporary, $mode )
			|| ( null !== $step['before'] && $this->mode( $step['place'] ) === $mode );
	}

	/**
	 * Carries one change out.
	 *
	 * @param array{path:mixed,place:string,bytes:?string,before:?string,mode:?int} $step      The change.
	 * @param string|null                                                         $temporary Its bytes; none for a deletion.
	 * @return bool Whether it worked.
	 */
	private function put( array $step, ?string $temporary ): bool {
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
	 * @param array{path:mixed,place:string,bytes:?string,before:?string,mode:?int} $step A change that was made.
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
	 * A repository inside what is deleted is not the work's to delete.
	 *
	 * @param string $directory For the file system.
	 * @param mixed  $path      Path as the caller gave it.
	 */
	private function assert_without_git( string $directory, mixed $path ): void {
		foreach ( (array) scandir( $directory ) as $name ) {
			if ( '.' === $name || '..' === $name ) {
				continue;
			}
			if ( Places::is_git( (string) $name ) ) {
				throw new Refusal( 'git', $this->places->show( $path ) . ' holds a .git, which takes no part in the work' );
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
