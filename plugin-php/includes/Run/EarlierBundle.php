<?php
/**
 * Earlier bundle that a task continues.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use WPCodebox\Access;
use WPCodebox\Authority;
use WPCodebox\Failure;
use WPCodebox\Native\Exception;

defined( 'ABSPATH' ) || exit;

/** A run that continues a bundle shows the bundle's change, so the caller must be allowed to see that bundle. The supervisor checks everything else. */
final class EarlierBundle {

	/**
	 * Creates the object with its dependencies.
	 *
	 * @param Access $access Decides which runs and bundles a caller may see.
	 */
	public function __construct( private readonly Access $access ) {}

	/**
	 * Returns the field `follow_up_of` for the run request, with the run id of the bundle.
	 *
	 * @param array<string, mixed> $input     Task input that the extension validated.
	 * @param Authority            $authority User or operator the call runs as.
	 * @return array{follow_up_of?: array<string, mixed>}
	 * @throws Failure|Exception When there is no such bundle, or the caller may not see it.
	 */
	public function field( array $input, Authority $authority ): array {
		$given = (array) ( $input['follow_up_of'] ?? [] );
		if ( [] === $given ) {
			return [];
		}
		$bundle = $this->access->bundle( (string) ( $given['run_id'] ?? $given['artifact_id'] ?? '' ), $authority );
		return [ 'follow_up_of' => [ 'run_id' => (string) $bundle['run_id'] ] + array_intersect_key( $given, [ 'comments' => true ] ) ];
	}
}
