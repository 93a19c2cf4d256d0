<?php
/**
 * Checks of a block's attributes and of its serialized form.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * Checks the block's attributes, and whether its serialized markup parses to the same block.
 *
 * @param \WP_Block_Type      $type   Block type.
 * @param array<string,mixed> $block  Parsed block.
 * @param string              $markup Markup of the block.
 * @param string              $mode   Checks to run: serialize, round-trip; serialize-parse and all run both.
 * @return list<array<string,mixed>>
 */
function block_checks( \WP_Block_Type $type, array $block, string $markup, string $mode ): array {
	$checks = array();
	if ( 'round-trip' !== $mode ) {
		$unknown  = array_diff( array_keys( (array) $block['attrs'] ), array_keys( $type->get_attributes() ) );
		$prepared = $type->prepare_attributes_for_render( (array) $block['attrs'] );
		$known    = array_diff_key( (array) $block['attrs'], array_flip( $unknown ) );
		// WordPress drops a value of the wrong type, or uses the default instead.
		$invalid  = array_keys( array_filter( $known, static fn ( $value, $name ): bool => ! array_key_exists( $name, $prepared ) || $prepared[ $name ] !== $value, ARRAY_FILTER_USE_BOTH ) );
		$checks[] = block_check( 'attributes-known', array() === $unknown, 'unknown: ' . implode( ', ', array_slice( $unknown, 0, 20 ) ) );
		$checks[] = block_check( 'attributes-valid', array() === $invalid, 'wrong type: ' . implode( ', ', array_slice( $invalid, 0, 20 ) ) );
	}
	if ( 'serialize' !== $mode ) {
		$again    = parse_blocks( $markup );
		$same     = 1 === count( $again ) && serialize_block( $again[0] ) === $markup && ( $again[0]['attrs'] ?? array() ) == $block['attrs'];
		$checks[] = block_check( 'round-trip', $same, 'the text that WordPress makes of the block parses into ' . ( 1 === count( $again ) ? 'another block' : count( $again ) . ' blocks' ) );
	}
	return $checks;
}

/**
 * Builds the result row of one check.
 *
 * @param string $name    Name of the check.
 * @param bool   $passed  Whether the check passed.
 * @param string $message Error message when the check failed.
 * @return array<string,mixed>
 */
function block_check( string $name, bool $passed, string $message ): array {
	return array(
		'name'   => $name,
		'status' => $passed ? 'passed' : 'failed',
	) + ( $passed ? array() : array( 'message' => cut( $message, 500 ) ) );
}

/**
 * Describes what a block's markup parses to.
 *
 * @param string $markup Markup of the block.
 * @return array<string,mixed>
 */
function parsed_block( string $markup ): array {
	$blocks = parse_blocks( $markup );
	$rows   = array_map(
		static fn ( array $block ): array => array(
			'blockName'   => $block['blockName'],
			'attrs'       => (object) plain( $block['attrs'] ?? array() ),
			'innerBlocks' => array_column( $block['innerBlocks'] ?? array(), 'blockName' ),
			'innerHTML'   => plain_text( (string) $block['innerHTML'], 8192 ),
		),
		array_slice( $blocks, 0, 20 )
	);
	return array(
		'count'  => count( $blocks ),
		'blocks' => $rows,
	);
}
