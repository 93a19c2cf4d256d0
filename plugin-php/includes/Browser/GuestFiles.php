<?php
/**
 * Files that a browser session starts with.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Browser;

use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/** Turns contents of the input into steps that write them below /wordpress or /tmp of the sandbox. */
final class GuestFiles {

	public const ARTIFACTS = '/wordpress/wp-content/uploads/wp-codebox/artifacts/';
	public const BUNDLES   = '/wordpress/wp-content/uploads/wp-codebox/agent-bundles/';

	/**
	 * Returns the steps for `runtime.filesystem_overlays` and must-use plugins that come with their content.
	 *
	 * @param array<string, mixed> $runtime `runtime` of the input.
	 * @return list<array<string, mixed>>
	 * @throws Failure `wp_codebox_input_invalid` with the field.
	 */
	public static function overlays( array $runtime ): array {
		[ $steps, $seen ] = [ [], [] ];
		foreach ( array_values( (array) ( $runtime['filesystem_overlays'] ?? [] ) ) as $number => $row ) {
			$field = "runtime.filesystem_overlays[$number]";
			$path  = self::path( (string) ( $row['target'] ?? '' ), $field . '.target' );
			if ( isset( $seen[ $path ] ) ) {
				throw Failure::invalid_input( __( 'Two entries of "runtime.filesystem_overlays" have the same "target"; give each entry a different path.', 'codebox' ), [], [ 'field' => $field . '.target' ] );
			}
			$seen[ $path ] = true;
			$steps[]       = self::write( $path, self::content( $row, $field ), (bool) ( $row['overwrite'] ?? true ) );
		}
		foreach ( array_values( (array) ( $runtime['mu_plugins'] ?? [] ) ) as $number => $row ) {
			if ( is_array( $row ) && isset( $row['content'] ) ) {
				$name    = sanitize_file_name( (string) ( $row['slug'] ?? "mu-$number" ) );
				$steps[] = self::write( '/wordpress/wp-content/mu-plugins/' . ( str_ends_with( $name, '.php' ) ? $name : $name . '.php' ), self::content( $row, "runtime.mu_plugins[$number]" ), true );
			}
		}
		return $steps;
	}

	/**
	 * Returns the steps for `artifact_files`, and a row about each file.
	 *
	 * @param array<mixed> $files `artifact_files` of the input.
	 * @return array{steps: list<array<string, mixed>>, refs: list<array<string, mixed>>}
	 */
	public static function artifacts( array $files ): array {
		[ $steps, $refs ] = [ [], [] ];
		foreach ( array_values( $files ) as $number => $row ) {
			$field   = "artifact_files[$number]";
			$row     = is_array( $row ) ? $row : [ 'path' => $row ];
			$path    = self::path( self::ARTIFACTS . ltrim( (string) ( $row['path'] ?? '' ), '/' ), $field . '.path' );
			$content = self::content( $row, $field );
			$steps[] = self::write( $path, $content, true );
			$refs[]  = array_filter( array_intersect_key( $row, array_flip( [ 'kind', 'mime_type', 'description' ] ) ) ) + [
				'path'       => substr( $path, strlen( self::ARTIFACTS ) ),
				'guest_path' => $path,
				'bytes'      => strlen( $content ),
				'sha256'     => hash( 'sha256', $content ),
			];
		}
		return [
			'steps' => $steps,
			'refs'  => $refs,
		];
	}

	/**
	 * Returns the steps for `agent_bundles`, and what the runner imports.
	 *
	 * @param array<mixed> $bundles `agent_bundles` of the input.
	 * @return array{steps: list<array<string, mixed>>, rows: list<array<string, mixed>>}
	 */
	public static function bundles( array $bundles ): array {
		[ $steps, $rows ] = [ [], [] ];
		foreach ( array_values( $bundles ) as $number => $row ) {
			if ( empty( $row['bundle'] ) ) {
				throw Failure::invalid_input( __( 'An entry of "agent_bundles" has no "bundle"; put the content of the agent bundle there.', 'codebox' ), [], [ 'field' => "agent_bundles[$number].bundle" ] );
			}
			$slug    = sanitize_key( (string) ( $row['slug'] ?? "bundle-$number" ) );
			$path    = self::BUNDLES . $number . '-' . $slug . '.json';
			$steps[] = self::write( $path, (string) wp_json_encode( $row['bundle'] ), true );
			$rows[]  = [
				'slug' => $slug,
				'path' => $path,
			] + array_intersect_key( $row, array_flip( [ 'on_conflict', 'owner_id', 'import_principal' ] ) );
		}
		return [
			'steps' => $steps,
			'rows'  => $rows,
		];
	}

	/**
	 * Returns a step that writes a file.
	 *
	 * @param string $path      Path in the sandbox.
	 * @param string $content   Contents.
	 * @param bool   $overwrite Whether an existing file is replaced.
	 * @return array<string, mixed>
	 */
	public static function write( string $path, string $content, bool $overwrite ): array {
		if ( $overwrite && mb_check_encoding( $content, 'UTF-8' ) ) {
			return [
				'step' => 'writeFile',
				'path' => $path,
				'data' => $content,
			];
		}
		// phpcs:disable WordPress.PHP.DiscouragedPHPFunctions, WordPress.PHP.DevelopmentFunctions -- writes PHP source that carries bytes.
		$template = '<?php if ( %1$s || ! file_exists( %2$s ) ) { is_dir( dirname( %2$s ) ) || mkdir( dirname( %2$s ), 0777, true ); file_put_contents( %2$s, base64_decode( %3$s ) ); }';
		$code     = sprintf( $template, $overwrite ? 'true' : 'false', var_export( $path, true ), var_export( base64_encode( $content ), true ) );
		// phpcs:enable
		return [
			'step' => 'runPHP',
			'code' => $code,
		];
	}

	/**
	 * Returns a path of the sandbox without `..`.
	 *
	 * @param string $path  Path; a relative one is below /wordpress.
	 * @param string $field Path of the field.
	 * @throws Failure `wp_codebox_input_invalid` for a path outside /wordpress and /tmp.
	 */
	public static function path( string $path, string $field ): string {
		$path  = str_starts_with( $path, '/' ) ? $path : '/wordpress/' . $path;
		$parts = explode( '/', substr( $path, 1 ) );
		$clean = 1 !== preg_match( '/[\x00-\x1f\x7f\\\\]/', $path ) && [] === array_intersect( $parts, [ '', '.', '..' ] ) && strlen( $path ) <= 1000;
		if ( ! $clean || ! in_array( $parts[0], [ 'wordpress', 'tmp' ], true ) || count( $parts ) < 2 ) {
			throw Failure::invalid_input( __( 'A path in the sandbox must name a file below /wordpress or /tmp, without ".", "..", "//", backslash and control characters.', 'codebox' ), [], [ 'field' => $field ] );
		}
		return $path;
	}

	/**
	 * Returns the contents of a row.
	 *
	 * @param array<string, mixed> $row   Row with content or content_base64.
	 * @param string               $field Path of the row.
	 */
	private static function content( array $row, string $field ): string {
		$text    = $row['content'] ?? null;
		$encoded = $row['content_base64'] ?? null;
		if ( is_string( $text ) && 'base64' === ( $row['encoding'] ?? '' ) ) {
			[ $text, $encoded ] = [ null, $text ];
		}
		if ( is_string( $text ) === is_string( $encoded ) ) {
			throw Failure::invalid_input( __( 'A file needs either "content" or "content_base64".', 'codebox' ), [], [ 'field' => $field . '.content' ] );
		}
		// phpcs:ignore WordPress.PHP.DiscouragedPHPFunctions -- contents of a file.
		$content = is_string( $text ) ? $text : base64_decode( $encoded, true );
		if ( false === $content ) {
			throw Failure::invalid_input( __( 'content_base64 is not base64.', 'codebox' ), [], [ 'field' => $field . '.content_base64' ] );
		}
		return $content;
	}
}
