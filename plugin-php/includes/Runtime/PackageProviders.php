<?php
/**
 * Runtimes and packages that plugins of this site provide.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Runtime;

use Closure;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\HostPlugin\HostAnswer;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/** A runtime is a callback in the registry, or an ability of another plugin. */
final class PackageProviders {

	/**
	 * Creates the provider.
	 *
	 * @param string  $id       Id of the runtime.
	 * @param Closure $callback Runs a package.
	 */
	private function __construct(
		public readonly string $id,
		private readonly Closure $callback
	) {}

	/**
	 * Returns what a plugin of the site knows about the package; empty without one.
	 *
	 * @param array<string, mixed> $input Request.
	 * @return array<string, mixed>
	 * @throws Failure `wp_codebox_runtime_provider_invalid_result`.
	 */
	public static function registered( array $input ): array {
		$rows = HostAnswer::of(
			/**
			 * Registers packages by slug, and runtimes by id.
			 *
			 * @param array<string, array{source?: string, ability?: string, workflows?: array<string, string>, callback?:
			 *   callable}> $registry Rows. `source` is the file of a package, `ability` the ability that runs it,
			 *   `workflows` the ability by id of a workflow. `callback` runs a package or, in the row of a runtime, every
			 *   package: it gets the request and returns `wp-codebox/runtime-package-result/v1` or a `WP_Error`.
			 * @param array<string, mixed> $input       Request, `wp-codebox/runtime-package-task/v1`.
			 * @param array<string, mixed> $inheritance Always empty: a package inherits nothing before it runs.
			 */
			static fn(): mixed => apply_filters( 'wp_codebox_runtime_package_registry', [], $input, [] ),
			ErrorCode::RuntimeProviderInvalidResult,
			__( 'A plugin that registers packages threw an exception; the PHP error log says where.', 'codebox' )
		);
		if ( ! is_array( $rows ) ) {
			throw Failure::because( ErrorCode::RuntimeProviderInvalidResult, __( 'The filter wp_codebox_runtime_package_registry did not return an array of packages by name.', 'codebox' ) );
		}
		$row = $rows[ $input['package']['slug'] ] ?? [];
		return ( is_array( $row ) ? $row : [] ) + [ 'registry' => $rows ];
	}

	/**
	 * Returns the runtime that the site chooses; null for the sandbox of this plugin.
	 *
	 * @param array<string, mixed> $row Row of the package, with the whole registry.
	 * @throws Failure `wp_codebox_runtime_provider_unavailable`.
	 */
	public static function chosen( array $row ): ?self {
		if ( is_callable( $row['callback'] ?? null ) ) {
			return new self( 'package', Closure::fromCallable( $row['callback'] ) );
		}
		$id = HostAnswer::of(
			/**
			 * Chooses the runtime of packages.
			 *
			 * @param string $provider Id of a runtime: `wp-codebox/sandbox`, a row of the registry with a callback, or the
			 *   name of an ability of another plugin.
			 */
			static fn(): mixed => apply_filters( 'wp_codebox_default_runtime_provider', RuntimePackages::SANDBOX ),
			ErrorCode::RuntimeProviderUnavailable,
			__( 'A plugin that chooses the runtime of packages threw an exception; the PHP error log says where.', 'codebox' )
		);
		$id = is_string( $id ) ? trim( $id ) : '';
		if ( in_array( $id, [ '', RuntimePackages::SANDBOX ], true ) ) {
			return null;
		}
		$known = $row['registry'][ $id ]['callback'] ?? null;
		if ( is_callable( $known ) ) {
			return new self( $id, Closure::fromCallable( $known ) );
		}
		// Abilities of this plugin are excluded: one that runs packages would call this method again without end.
		$ability = function_exists( 'wp_get_ability' ) && ! str_starts_with( $id, 'wp-codebox/' ) && wp_has_ability( $id ) ? wp_get_ability( $id ) : null;
		if ( null !== $ability ) {
			return new self( $id, static fn( array $input ): mixed => $ability->execute( $input ) );
		}
		throw Failure::because(
			ErrorCode::RuntimeProviderUnavailable,
			/* translators: %s: id of a runtime. */
			Sentence::of( __( 'The runtime "%s", which a plugin of this site chose for packages, does not exist.', 'codebox' ), sanitize_text_field( $id ) ),
			[ __( 'Register the runtime with the filter wp_codebox_runtime_package_registry, or remove the callback of the filter wp_codebox_default_runtime_provider that chose it.', 'codebox' ) ]
		);
	}

	/**
	 * Runs a package.
	 *
	 * @param array<string, mixed> $input Request.
	 * @return array<string, mixed> Answer in plain data.
	 * @throws Failure `wp_codebox_runtime_provider_invalid_result`, or the runtime's own.
	 */
	public function run( array $input ): array {
		$invalid = ErrorCode::RuntimeProviderInvalidResult;
		$answer  = HostAnswer::of( fn(): mixed => ( $this->callback )( $input ), $invalid, __( 'The runtime of the package threw an exception; the PHP error log says where.', 'codebox' ) );
		return HostAnswer::document( $answer, $invalid, $invalid );
	}
}
