/** A client of WebSocket (RFC 6455) with text messages, because Node 20 has none. */
import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';

/** Connects to a port of this machine; `onMessage` gets the text of each message, `onClose` is called once. */
export async function webSocket( port, path, onMessage, onClose ) {
	const socket = connect( port, '127.0.0.1' );
	let data = Buffer.alloc( 0 );
	let parts = [];
	let open;
	const opened = new Promise( ( resolve, reject ) => {
		open = resolve;
		socket.once( 'error', reject );
		socket.once( 'close', () => reject( new Error( `no WebSocket at port ${ port }` ) ) );
	} );
	socket.once( 'close', onClose );
	socket.on( 'error', () => {} );
	const frame = () => {
		if ( data.length < 2 ) {
			return false;
		}
		const short = data[ 1 ] & 0x7f;
		const head = 126 === short ? 4 : 127 === short ? 10 : 2;
		if ( data.length < head ) {
			return false;
		}
		const size = 126 === short ? data.readUInt16BE( 2 ) : 127 === short ? Number( data.readBigUInt64BE( 2 ) ) : short;
		if ( data.length < head + size ) {
			return false;
		}
		const kind = data[ 0 ] & 0x0f;
		const last = 0 !== ( data[ 0 ] & 0x80 );
		const body = data.subarray( head, head + size );
		data = data.subarray( head + size );
		if ( 8 === kind ) {
			socket.end();
		} else if ( 9 === kind ) {
			send( body, 10 );
		} else if ( kind < 3 ) {
			parts.push( body );
			if ( last ) {
				const text = Buffer.concat( parts ).toString();
				parts = [];
				onMessage( text );
			}
		}
		return true;
	};
	function send( body, kind = 1 ) {
		const size = body.length;
		const head = size < 126 ? Buffer.from( [ 0x80 | kind, 0x80 | size ] ) : Buffer.alloc( size < 65536 ? 4 : 10 );
		if ( size >= 126 ) {
			head[ 0 ] = 0x80 | kind;
			head[ 1 ] = 0x80 | ( size < 65536 ? 126 : 127 );
			if ( size < 65536 ) {
				head.writeUInt16BE( size, 2 );
			} else {
				head.writeBigUInt64BE( BigInt( size ), 2 );
			}
		}
		const mask = randomBytes( 4 );
		socket.write( Buffer.concat( [ head, mask, body.map( ( byte, at ) => byte ^ mask[ at % 4 ] ) ] ) );
	}
	socket.once( 'connect', () => socket.write( `GET ${ path } HTTP/1.1\r\nHost: 127.0.0.1:${ port }\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: ${ randomBytes( 16 ).toString( 'base64' ) }\r\nSec-WebSocket-Version: 13\r\n\r\n` ) );
	let greeted = false;
	socket.on( 'data', ( piece ) => {
		data = Buffer.concat( [ data, piece ] );
		const end = greeted ? 0 : data.indexOf( '\r\n\r\n' );
		if ( ! greeted && end >= 0 ) {
			if ( ! data.subarray( 0, end ).toString().startsWith( 'HTTP/1.1 101' ) ) {
				socket.destroy();
				return;
			}
			greeted = true;
			data = data.subarray( end + 4 );
			open();
		}
		while ( greeted && frame() ) {
			// Handles all complete frames in `data`.
		}
	} );
	await opened;
	return { send: ( text ) => send( Buffer.from( text ) ), close: () => socket.destroy() };
}
