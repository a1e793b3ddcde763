// Loaded before a server that listens on every address of the computer: it then listens on the loopback only, and says
// on which port.
import net from 'node:net';

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (...given) {
    if (typeof given[0] !== 'number' && !/^\d+$/.test(given[0])) return listen.apply(this, given);
    this.once('listening', () => console.log(`listening on ${this.address().port}`));
    const rest = given.slice(1).filter((one) => typeof one !== 'string');
    return listen.call(this, { port: Number(given[0]), host: '127.0.0.1' }, ...rest);
};
