<?php
/**
 * Renders one block of the block editor and checks its serialized form.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/watch.php';
require_once __DIR__ . '/block-checks.php';

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
	 * Modes: the ones of the public form, then the checks that a caller can select. The supervisor carries out the public mode
	 * `editor-insert-save` in a browser and does not start this program for it.
	 */
	public const MODES = array( 'render', 'serialize-parse', 'serialize', 'round-trip', 'all' );

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
	 * @param string $mode One of MODES.
	 * @return array<string,mixed> Result document.
	 */
	public function exercise( string $mode ): array {
		$name = $this->arguments->required( 'block-name' );
		if ( 1 === preg_match( '~^[a-z][a-z0-9-]*$~', $name ) ) {
			$name = "core/$name";
		}
		if ( 1 !== preg_match( '~^[a-z][a-z0-9-]*/[a-z][a-z0-9-]*$~', $name ) ) {
			throw Refusal::input( sprintf( 'block-name is %s, but must be like core/paragraph', Arguments::shown( $name ) ) );
		}
		$type     = \WP_Block_Type_Registry::get_instance()->get_registered( $name );
		$block    = $this->block( $name );
		$document = $this->document( $name, $mode, $block, null !== $type );
		if ( null === $type ) {
			throw Refusal::failed( "no block $name is registered on the server; wordpress.runtime-discovery and wordpress.execution-surfaces list the registered ones", $document );
		}
		$document['dynamic'] = $type->is_dynamic();
		$document['checks']  = array();
		$markup              = serialize_block( $block );
		$this->watch->begin();
		if ( 'render' !== $mode ) {
			$document['serialized'] = array(
				'markup' => plain_text( $markup, self::SHOWN ),
				'bytes'  => strlen( $markup ),
				'sha256' => hash( 'sha256', $markup ),
			);
			$document['parsed']     = parsed_block( $markup );
			$document['checks']     = block_checks( $type, $block, $markup, $mode );
		}
		if ( 'render' === $mode || 'all' === $mode ) {
			$document['render'] = $this->render( $block, $document );
		}
		$failed = array_filter( $document['checks'], static fn ( array $check ): bool => 'failed' === $check['status'] );
		if ( 'render' !== $mode ) {
			$document['validation'] = array(
				'valid'  => array() === $failed,
				'issues' => array_values( $failed ),
			);
		}
		$document = array_merge( $document, $this->observed() );
		if ( $failed ) {
			throw Refusal::failed( count( $failed ) . ' of ' . count( $document['checks'] ) . ' checks failed: ' . implode( ', ', array_column( $failed, 'name' ) ), $document );
		}
		return $document;
	}

	/**
	 * Returns the members of the result that are known before the block is rendered.
	 *
	 * @param string              $name       Name of the block.
	 * @param string              $mode       Requested mode.
	 * @param array<string,mixed> $block      Requested block.
	 * @param bool                $registered Whether the server knows the block.
	 * @return array<string,mixed>
	 */
	private function document( string $name, string $mode, array $block, bool $registered ): array {
		$input = array( 'attrs' => (object) plain( $block['attrs'] ?? array() ) );
		foreach ( array( 'content', 'markup' ) as $text ) {
			if ( $this->arguments->has( $text ) ) {
				$input[ $text ] = plain_text( $this->arguments->text( $text ), self::SHOWN );
			}
		}
		return result( 'wordpress-block-exercise-result' ) + array(
			'blockName'    => $name,
			'attrs'        => (object) plain( $block['attrs'] ?? array() ),
			'input'        => $input,
			// The public form has only these two modes; `selection` is the requested one.
			'mode'         => 'render' === $mode ? 'render' : 'serialize-parse',
			'selection'    => $mode,
			'source'       => $this->arguments->has( 'source' ) ? cut( $this->arguments->text( 'source' ), 500 ) : ( $this->arguments->has( 'markup' ) ? 'markup' : 'attributes' ),
			'registered'   => $registered,
			'notices'      => array(),
			'errors'       => array(),
			'diagnostics'  => array(),
			'artifacts'    => (object) array(),
			'artifactRefs' => array(),
			'metadata'     => (object) array(),
		);
	}

	/**
	 * Returns what WordPress and PHP did since the start.
	 *
	 * @return array<string,mixed>
	 */
	private function observed(): array {
		$messages = $this->watch->php()['messages'];
		$error    = static fn ( array $row ): bool => 'error' === $row['level'];
		$queries  = $this->watch->queries();
		return array(
			'notices'     => array_values( array_filter( $messages, static fn ( array $row ): bool => ! $error( $row ) ) ),
			'errors'      => array_map( static fn ( array $row ): array => array( 'code' => 'php-error' ) + $row, array_values( array_filter( $messages, $error ) ) ),
			'performance' => $this->watch->costs() + array(
				'queryCount' => $queries['count'],
				'queryMs'    => $queries['totalMs'],
			),
		);
	}

	/**
	 * Returns the requested block in the form that parse_blocks() gives.
	 *
	 * @param string $name Name of the block.
	 * @return array<string,mixed>
	 */
	private function block( string $name ): array {
		$content = $this->arguments->text( 'content' );
		if ( '' !== $this->arguments->text( 'markup' ) ) {
			if ( array() !== $this->arguments->object( 'attrs-json' ) || '' !== $content ) {
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
	 * Renders the block and reports the output.
	 *
	 * @param array<string,mixed> $block    Parsed block.
	 * @param array<string,mixed> $document Result document so far.
	 * @return array<string,mixed>
	 */
	private function render( array $block, array $document ): array {
		try {
			$html = (string) render_block( $block );
		} catch ( \Throwable $thrown ) {
			throw Refusal::failed( sprintf( 'rendering threw %s: %s in %s:%d', get_class( $thrown ), cut( $thrown->getMessage(), 500 ), guest_path( $thrown->getFile() ), $thrown->getLine() ), array_merge( $document, $this->observed() ) );
		}
		return array(
			'html'   => plain_text( $html, self::SHOWN ),
			'bytes'  => strlen( $html ),
			'sha256' => hash( 'sha256', $html ),
		);
	}
}
