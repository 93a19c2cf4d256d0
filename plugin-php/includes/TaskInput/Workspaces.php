<?php
/**
 * Workspaces and runtime mounts of a task.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\TaskInput;

defined( 'ABSPATH' ) || exit;

/** Converts `workspaces`, `runtime_stack_mounts` and `runtime_config_mounts` to mounts. */
final class Workspaces {

	/**
	 * Returns the mounts that these fields ask for.
	 *
	 * @param array<string, mixed> $input Task input.
	 * @return list<array<string, mixed>>
	 */
	public function mounts( array $input ): array {
		$mounts = [];
		foreach ( array_values( (array) ( $input['workspaces'] ?? [] ) ) as $index => $row ) {
			$mounts[] = $this->workspace( (array) $row, "workspaces[$index]" );
		}
		foreach ( [ 'runtime_stack_mounts', 'runtime_config_mounts' ] as $field ) {
			foreach ( array_values( (array) ( $input[ $field ] ?? [] ) ) as $index => $row ) {
				$mounts[] = $this->runtime( (array) $row, $field . '[' . $index . ']' );
			}
		}
		return $mounts;
	}

	/**
	 * Returns the mount of one workspace {target, mode, seed} or {source, target, mode}.
	 *
	 * @param array<mixed> $row  Workspace.
	 * @param string       $name Name of the row, for an error.
	 * @return array<string, mixed>
	 */
	private function workspace( array $row, string $name ): array {
		$seed = (array) ( $row['seed'] ?? [] );
		$type = (string) ( $seed['type'] ?? 'directory' );
		if ( 'directory' !== $type ) {
			throw RefusedFields::refusal( $name . '.seed.type', __( 'a workspace starts from a directory of the host', 'codebox' ), __( 'Use the type "directory" with "source"; the command "wp-codebox recipe-run" also takes other types.', 'codebox' ) );
		}
		$source = $this->text( $seed['source'] ?? $row['source'] ?? null, $name . '.seed.source' );
		$mount  = [
			'source' => $source,
			'target' => is_string( $row['target'] ?? null ) ? trim( $row['target'] ) : '/workspace/' . basename( $source ),
			'mode'   => (string) ( $row['mode'] ?? 'readwrite' ),
		];
		if ( ! empty( $seed['excludePaths'] ) ) {
			$mount['exclude'] = array_map( fn( mixed $path ): string => $this->excluded( $path, $name . '.seed.excludePaths' ), array_values( (array) $seed['excludePaths'] ) );
		}
		return $mount + $this->metadata( $row );
	}

	/**
	 * Returns the mount of one row {source, target, mode, metadata}; without a mode the sandbox only reads it.
	 *
	 * @param array<mixed> $row  Row.
	 * @param string       $name Name of the row, for an error.
	 * @return array<string, mixed>
	 */
	private function runtime( array $row, string $name ): array {
		return [
			'source' => $this->text( $row['source'] ?? null, $name . '.source' ),
			'target' => $this->text( $row['target'] ?? null, $name . '.target' ),
			'mode'   => (string) ( $row['mode'] ?? 'readonly' ),
		] + $this->metadata( $row );
	}

	/**
	 * Returns the metadata of a row, as a part of its mount.
	 *
	 * @param array<mixed> $row Row.
	 * @return array<string, mixed>
	 */
	private function metadata( array $row ): array {
		return empty( $row['metadata'] ) || ! is_array( $row['metadata'] ) ? [] : [ 'metadata' => $row['metadata'] ];
	}

	/**
	 * Returns the directory name that a pattern such as `node_modules/**` excludes.
	 *
	 * @param mixed  $path Pattern.
	 * @param string $name Name of the field, for an error.
	 */
	private function excluded( mixed $path, string $name ): string {
		$plain = (string) preg_replace( '#^\./|/\*\*$|/$#', '', $this->text( $path, $name ) );
		if ( 1 === preg_match( '#[/*?\[]#', $plain ) ) {
			throw RefusedFields::refusal( $name, __( 'only plain names can be excluded (they apply at any depth), not patterns', 'codebox' ), __( 'Give plain names, such as node_modules.', 'codebox' ) );
		}
		return $plain;
	}

	/**
	 * Returns a text without surrounding white space; fails when the value is no text.
	 *
	 * @param mixed  $value Value.
	 * @param string $name  Name of the field.
	 */
	private function text( mixed $value, string $name ): string {
		$text = is_string( $value ) ? trim( $value ) : '';
		if ( '' === $text ) {
			throw RefusedFields::refusal( $name, __( 'it must be a path', 'codebox' ), __( 'Give the absolute path of a directory of this host as "source", a path below /workspace or /wordpress/wp-content as "target", and plain names such as node_modules in "excludePaths".', 'codebox' ) );
		}
		return $text;
	}
}
