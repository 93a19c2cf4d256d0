<?php
/**
 * Renders one block of the block editor and checks its serialized form.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/watch.php';

/**
 * Starts the command, and the observer that records what rendering does.
 */
function watch_blocks(): Watch {
	begin();
	return new Watch();
}

/**
 * Builds the requested block and checks it.
 */
final class Block {
	/** Size limit of reported markup and output, in bytes. */
	private const SHOWN = 65536;

	/**
	 * Creates the object.
	 *
	 * @param Arguments $arguments Arguments of the guest command.
	 * @param Watch     $watch     Observer that records the effects.
	 */
	public function __construct( private readonly Arguments $arguments, private readonly Watch $watch ) {}

	/**
	 * Runs the requested checks and returns their results.
	 *
	 * @param string $mode Checks to run: render, serialize, round-trip or all.
	 * @return array<string,mixed> Result document.
	 */
	public function exercise( string $mode ): array {
		$name = $this->arguments->required( 'block-name' );
		if ( 1 !== preg_match( '~^[a-z][a-z0-9-]*/[a-z][a-z0-9-]*$~', $name ) ) {
			throw Refusal::input( sprintf( 'block-name is %s, but must be like core/paragraph', Arguments::shown( $name ) ) );
		}
		$type     = \WP_Block_Type_Registry::get_instance()->get_registered( $name );
		$block    = $this->block( $name );
		$document = array(
			'schema'     => 'wp-codebox/wordpress-block-exercise-result/v1',
			'status'     => 'ok',
			'block'      => $name,
			'mode'       => $mode,
			'registered' => null !== $type,
		);
		if ( $this->arguments->has( 'source' ) ) {
			$document['source'] = cut( $this->arguments->text( 'source' ), 500 );
		}
		if ( null === $type ) {
			throw Refusal::failed( "no block $name is registered on the server; wordpress.runtime-discovery and wordpress.execution-surfaces list the registered ones", $document );
		}
		$document['dynamic'] = $type->is_dynamic();
		$document['checks']  = array();
		$markup              = serialize_block( $block );
		if ( 'render' !== $mode ) {
			$document['markup'] = plain_text( $markup, self::SHOWN );
			$document['checks'] = $this->checks( $type, $block, $markup, $mode );
		}
		if ( 'render' === $mode || 'all' === $mode ) {
			$document += $this->render( $block );
		}
		$failed = array_filter( $document['checks'], static fn ( array $check ): bool => 'failed' === $check['status'] );
		if ( $failed ) {
			throw Refusal::failed( count( $failed ) . ' of ' . count( $document['checks'] ) . ' checks failed: ' . implode( ', ', array_column( $failed, 'name' ) ), $document );
		}
		return $document;
	}

	/**
	 * Returns the requested block in the form that parse_blocks() gives.
	 *
	 * @param string $name Name of the block.
	 * @return array<string,mixed>
	 */
	private function block( string $name ): array {
		$content = $this->arguments->text( 'content' );
		if ( $this->arguments->has( 'markup' ) ) {
			if ( $this->arguments->has( 'attrs-json' ) || $this->arguments->has( 'content' ) ) {
				throw Refusal::input( 'give either markup or attrs-json and content' );
			}
			$blocks = array_values( array_filter( parse_blocks( $this->arguments->text( 'markup' ) ), static fn ( array $block ): bool => null !== $block['blockName'] ) );
			if ( 1 !== count( $blocks ) || $blocks[0]['blockName'] !== $name ) {
				throw Refusal::input( sprintf( 'markup must hold one block %s, but holds %s', $name, $blocks ? implode( ', ', array_slice( array_column( $blocks, 'blockName' ), 0, 10 ) ) : 'none' ) );
			}
			return $blocks[0];
		}
		// The content may contain inner blocks.
		$inner = has_blocks( $content ) ? array_values( array_filter( parse_blocks( $content ), static fn ( array $block ): bool => null !== $block['blockName'] ) ) : array();
		return array(
			'blockName'    => $name,
			'attrs'        => $this->arguments->object( 'attrs-json' ),
			'innerBlocks'  => $inner,
			'innerHTML'    => $inner ? '' : $content,
			'innerContent' => $inner ? array_fill( 0, count( $inner ), null ) : ( '' === $content ? array() : array( $content ) ),
		);
	}

	/**
	 * Checks the block's attributes, and whether its serialized markup parses to the same block.
	 *
	 * @param \WP_Block_Type      $type   Block type.
	 * @param array<string,mixed> $block  Parsed block.
	 * @param string              $markup Markup of the block.
	 * @param string              $mode   Checks to run: serialize, round-trip or all.
	 * @return list<array<string,mixed>>
	 */
	private function checks( \WP_Block_Type $type, array $block, string $markup, string $mode ): array {
		$checks = array();
		if ( 'round-trip' !== $mode ) {
			$unknown  = array_diff( array_keys( (array) $block['attrs'] ), array_keys( $type->get_attributes() ) );
			$prepared = $type->prepare_attributes_for_render( (array) $block['attrs'] );
			$known    = array_diff_key( (array) $block['attrs'], array_flip( $unknown ) );
			// WordPress drops a value of the wrong type, or uses the default instead.
			$invalid  = array_keys( array_filter( $known, static fn ( $value, $name ): bool => ! array_key_exists( $name, $prepared ) || $prepared[ $name ] !== $value, ARRAY_FILTER_USE_BOTH ) );
			$checks[] = self::check( 'attributes-known', array() === $unknown, 'unknown: ' . implode( ', ', array_slice( $unknown, 0, 20 ) ) );
			$checks[] = self::check( 'attributes-valid', array() === $invalid, 'wrong type: ' . implode( ', ', array_slice( $invalid, 0, 20 ) ) );
		}
		if ( 'serialize' !== $mode ) {
			$again    = parse_blocks( $markup );
			$same     = 1 === count( $again ) && serialize_block( $again[0] ) === $markup && ( $again[0]['attrs'] ?? array() ) == $block['attrs'];
			$checks[] = self::check( 'round-trip', $same, 'the text that WordPress makes of the block parses into ' . ( 1 === count( $again ) ? 'another block' : count( $again ) . ' blocks' ) );
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
	private static function check( string $name, bool $passed, string $message ): array {
		return array(
			'name'   => $name,
			'status' => $passed ? 'passed' : 'failed',
		) + ( $passed ? array() : array( 'message' => cut( $message, 500 ) ) );
	}

	/**
	 * Renders the block and reports the output with its effects.
	 *
	 * @param array<string,mixed> $block Parsed block.
	 * @return array<string,mixed>
	 */
	private function render( array $block ): array {
		$this->watch->begin();
		try {
			$html = (string) render_block( $block );
		} catch ( \Throwable $thrown ) {
			throw Refusal::failed( sprintf( 'rendering threw %s: %s in %s:%d', get_class( $thrown ), cut( $thrown->getMessage(), 500 ), guest_path( $thrown->getFile() ), $thrown->getLine() ) );
		}
		return array(
			'html'    => plain_text( $html, self::SHOWN ),
			'bytes'   => strlen( $html ),
			'sha256'  => hash( 'sha256', $html ),
			'php'     => $this->watch->php(),
			'queries' => $this->watch->queries(),
			'costs'   => $this->watch->costs(),
		);
	}
}
